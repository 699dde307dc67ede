package telemetry

import (
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
)

// maxText bounds names and attribute values, in bytes.
const maxText = 256

// spanAttributes are those of A251, with and without their prefix the same.
var spanAttributes = map[string]bool{
	"run_id": true, "workflow_id": true, "node_id": true, "node_type": true, "node_attempt": true,
	"event_type": true, "event_seq": true, "interrupt_kind": true, "interrupt_id": true,
	"cap_kind": true, "cap_limit": true, "cap_observed": true,
}

const prefix = "openwop."

// attributes keeps what A251 lists, if it is a string, a bool or a whole number.
func attributes(attrs map[string]any) []attribute.KeyValue {
	var out []attribute.KeyValue
	for name, value := range attrs {
		name = strings.TrimPrefix(name, prefix)
		if !spanAttributes[name] {
			continue
		}
		key := attribute.Key(prefix + name)
		switch v := value.(type) {
		case string:
			out = append(out, key.String(bounded(v)))
		case bool:
			out = append(out, key.Bool(v))
		case int:
			out = append(out, key.Int(v))
		case int64:
			out = append(out, key.Int64(v))
		case uint64:
			out = append(out, key.Int64(int64(min(v, 1<<63-1))))
		}
	}
	return out
}

// bounded is a copy of at most maxText bytes of valid UTF-8.
func bounded(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	if !utf8.ValidString(s) {
		return strings.ToValidUTF8(s, "")
	}
	return strings.Clone(s)
}
