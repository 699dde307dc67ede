package engine

import (
	"encoding/json"
)

// describe is a predicate as guests write it (section 2.2); null for none.
func describe(p *Predicate) json.RawMessage {
	raw, err := json.Marshal(p)
	if err != nil {
		return json.RawMessage("null") // a number that JSON does not have
	}
	return raw
}
