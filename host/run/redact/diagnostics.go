package redact

import (
	"bytes"
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// Limits of a diagnostics object.
const (
	maxText             = 200
	maxDiagnosticsDepth = 6
	maxDiagnosticsList  = 32
	maxDiagnosticsBytes = 8 * abi.KiB
)

// Diagnostics returns a diagnostics object bounded in size and redacted, nil for invalid JSON.
func Diagnostics(raw json.RawMessage) json.RawMessage {
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return nil
	}
	out, err := Marshal(Value(v, 1))
	if err != nil {
		return nil
	}
	if len(out) > maxDiagnosticsBytes {
		out, _ = Marshal(overflow("size_overflow", 0))
	}
	return out
}

func overflow(reason string, omitted int) map[string]any {
	m := map[string]any{"truncated": true, "reason": reason}
	if omitted > 0 {
		m["omitted"] = omitted
	}
	return m
}

// Value bounds and redacts one value of a diagnostics object. The level of the object's own is 1.
func Value(v strictjson.Value, level int) any {
	switch v.Kind {
	case strictjson.KindString:
		s, _ := v.Text()
		return Gap(s, maxText)
	case strictjson.KindArray, strictjson.KindObject:
		if level > maxDiagnosticsDepth {
			return overflow("depth_overflow", 0)
		}
		if v.Is(strictjson.KindArray) {
			return boundList(v, level)
		}
		return boundObject(v, level)
	}
	return json.RawMessage(v.Raw)
}

func boundList(v strictjson.Value, level int) any {
	out, omitted := []any{}, 0
	for item := range v.Items() {
		if len(out) == maxDiagnosticsList {
			omitted++
			continue
		}
		out = append(out, Value(item, level+1))
	}
	if omitted > 0 {
		out = append(out, overflow("list_overflow", omitted))
	}
	return out
}

func boundObject(v strictjson.Value, level int) any {
	out, omitted := map[string]any{}, 0
	for name, m := range v.Members() {
		if level == 1 && name == "considered" {
			if n, ok := m.SafeInteger(); !ok || n < 0 {
				continue
			}
		}
		if len(out) == maxDiagnosticsList {
			omitted++
			continue
		}
		out[Gap(name, 64)] = Value(m, level+1)
	}
	if omitted > 0 {
		out["truncated"], out["reason"], out["omitted"] = true, "list_overflow", omitted
	}
	return out
}

// Marshal is json.Marshal without HTML escapes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
