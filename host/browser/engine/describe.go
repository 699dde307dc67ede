package engine

import (
	"encoding/json"

	"github.com/sluicehost/sluice/host/browser/action"
)

// describe is a predicate as guests write it (section 2.2); null for none.
func describe(p *action.Predicate) json.RawMessage {
	raw, err := json.Marshal(p)
	if err != nil {
		return json.RawMessage("null") // a number that JSON does not have
	}
	return raw
}
