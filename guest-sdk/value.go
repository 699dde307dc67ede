package guest

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// textMember returns a member's text, "" when it is missing or no text.
func textMember(v strictjson.Value, name string) string {
	m, _ := v.Member(name)
	s, _ := m.Text()
	return s
}

func intMember(v strictjson.Value, name string) int {
	m, _ := v.Member(name)
	n, _ := m.Int64()
	return int(n)
}

// list returns the texts of an array, not nil when there is an array.
func list(v strictjson.Value) []string {
	if !v.Is(strictjson.KindArray) {
		return nil
	}
	texts := []string{}
	for item := range v.Items() {
		if s, ok := item.Text(); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// texts returns the members of an object that are texts.
func texts(v strictjson.Value) map[string]string {
	if !v.Is(strictjson.KindObject) {
		return nil
	}
	m := map[string]string{}
	for name, member := range v.Members() {
		if s, ok := member.Text(); ok {
			m[name] = s
		}
	}
	return m
}

// rawMembers returns the members of an object as they are spelled.
func rawMembers(v strictjson.Value) map[string]json.RawMessage {
	if !v.Is(strictjson.KindObject) {
		return nil
	}
	m := map[string]json.RawMessage{}
	for name, member := range v.Members() {
		m[name] = json.RawMessage(member.Raw)
	}
	return m
}

// parseObject checks that src is one JSON object. It is a function of its own
// because every message from the host goes through it.
func parseObject(src []byte) (strictjson.Value, error) {
	return strictjson.Parse(src, strictjson.ParseOptions{})
}
