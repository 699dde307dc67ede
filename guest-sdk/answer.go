package guest

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// An Answer is what the owner gave to a question.
type Answer struct {
	data   strictjson.Value
	sealed []string
}

// Text returns a field as text: a string as it is, another value as JSON, ""
// when it is missing.
func (a Answer) Text(name string) string {
	v, ok := a.data.Member(name)
	if !ok || v.Absent() {
		return ""
	}
	if s, ok := v.Text(); ok {
		return s
	}
	return string(v.Raw)
}

// File is the file of a field with the format file, of at most abi.MaxAnswerFile bytes.
// Its name and media type are what the owner's browser says.
func (a Answer) File(name string) (abi.AnswerFile, error) { return abi.ParseAnswerFile(a.Text(name)) }

// Has reports whether a field was given.
func (a Answer) Has(name string) bool {
	v, ok := a.data.Member(name)
	return ok && !v.Absent()
}

// Sealed reports whether a field holds a handle in place of its value (§18).
func (a Answer) Sealed(name string) bool { return slices.Contains(a.sealed, name) }

// Decode reads all fields into v, a struct or a map.
func (a Answer) Decode(v any) error {
	if a.data.Absent() {
		return nil
	}
	return json.Unmarshal(a.data.Raw, v)
}

// readAnswer reads INTERACTION_RESPONSE (§9.10).
func readAnswer(reply []byte) (Answer, error) {
	v, err := parseObject(reply)
	if err != nil {
		return Answer{}, err
	}
	switch textMember(v, "status") {
	case abi.AnswerSuccess:
		data, _ := v.Member("data")
		sealed, _ := v.Member("sealed_fields")
		return Answer{data: data, sealed: list(sealed)}, nil
	case abi.AnswerCancelled:
		return Answer{}, ErrCancelled
	case abi.AnswerTimeout:
		return Answer{}, ErrTimeout
	default:
		return Answer{}, errors.New("guest: the host answered with an unknown status")
	}
}
