package conformance

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// emittedAt is the time of records in short form.
const emittedAt = "2026-01-01T00:00:00Z"

// messageTypes are the steps that are messages.
var messageTypes = []string{
	"RECORD", "DELETE", "STATE", "PROGRESS", "SKIP_RESULT", "INTERACTION", "ASSISTANCE", "ASSISTANCE_STATUS",
	"DETAIL_GAP", "DETAIL_GAP_RECOVERED", "DETAIL_COVERAGE", "DONE",
}

// expand turns the steps of a transcript into those of the player.
func expand(steps []string) ([]string, error) {
	var out []string
	for _, s := range steps {
		e, err := expandStep(s)
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", s, err)
		}
		out = append(out, e)
	}
	return out, nil
}

func expandStep(s string) (string, error) {
	word, rest, _ := strings.Cut(s, " ")
	switch word {
	case "repeat":
		n, step, _ := strings.Cut(rest, " ")
		e, err := expandStep(step)
		return "repeat " + n + " " + e, err
	case "line", "bytes":
		text, err := unescape(rest)
		if word == "line" {
			text += "\n"
		}
		return "write " + hex.EncodeToString([]byte(text)), err
	case "request":
		fn, arg, _ := strings.Cut(rest, " ")
		text, err := unescape(arg)
		return "call " + fn + " " + hex.EncodeToString([]byte(text)), err
	case "frame":
		b, err := frame(rest)
		return "call emit " + hex.EncodeToString(b), err
	case "long", "deep":
		return stretched(word, rest)
	}
	for _, typ := range messageTypes {
		if typ == word {
			m, err := message(typ, rest)
			return "say " + m, err
		}
	}
	return s, nil
}

// stretched is "long N STEP" or "deep N STEP": in the step, … becomes N letters
// or N arrays, so that limits can be read in the transcript.
func stretched(how, s string) (string, error) {
	count, step, _ := strings.Cut(s, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		return "", err
	}
	with := strings.Repeat("x", n)
	if how == "deep" {
		with = strings.Repeat("[", n) + strings.Repeat("]", n)
	}
	return expandStep(strings.ReplaceAll(step, "…", with))
}

// message spells a message from its short form.
func message(typ, rest string) (string, error) {
	if strings.HasPrefix(rest, "{") {
		body := strings.TrimPrefix(rest, "{")
		if strings.TrimSpace(body) != "}" {
			body = "," + body
		}
		return `{"type":"` + typ + `"` + body, nil
	}
	switch typ {
	case "RECORD", "DELETE":
		stream, rest, _ := strings.Cut(rest, " ")
		d := json.NewDecoder(strings.NewReader(rest))
		var key, data json.RawMessage
		if err := d.Decode(&key); err != nil {
			return "", err
		}
		op := ""
		if typ == "DELETE" {
			op = `,"op":"delete"`
		} else if err := d.Decode(&data); err != nil {
			return "", err
		}
		if data != nil {
			op = `,"data":` + string(data)
		}
		return fmt.Sprintf(`{"type":"RECORD","stream":%q,"key":%s%s,"emitted_at":%q}`, stream, key, op, emittedAt), nil
	case "STATE":
		stream, cursor, _ := strings.Cut(rest, " ")
		return fmt.Sprintf(`{"type":"STATE","stream":%q,"cursor":%s}`, stream, cursor), nil
	case "DONE":
		f := strings.SplitN(rest, " ", 3)
		if len(f) < 2 {
			return "", fmt.Errorf("want DONE STATUS COUNT [ERROR]")
		}
		e := ""
		if len(f) == 3 {
			e = `,"error":` + f[2]
		}
		return fmt.Sprintf(`{"type":"DONE","status":%q,"records_emitted":%s%s}`, f[0], f[1], e), nil
	}
	return "", fmt.Errorf("%s has no short form", typ)
}

// unescape reads text with the escapes of Go; quotes stand for themselves.
func unescape(s string) (string, error) {
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s, err)
	}
	return out, nil
}

// frame reads a frame: hexadecimal, and texts in quotes.
func frame(s string) ([]byte, error) {
	var out []byte
	for _, f := range strings.Fields(s) {
		if text, ok := strings.CutPrefix(f, "'"); ok {
			out = append(out, strings.TrimSuffix(text, "'")...)
			continue
		}
		b, err := hex.DecodeString(f)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}
