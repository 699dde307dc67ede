package guest

import "encoding/json"

// A textChunk is the request of the message call (section 3 of abi.md).
type textChunk struct {
	Node  string          `json:"node,omitempty"`
	Chunk string          `json:"chunk"`
	Last  bool            `json:"is_last"`
	Meta  json.RawMessage `json:"meta,omitempty"`
}

// Message streams a piece of text to whoever watches the run; nothing depends
// on it. Options: Node, Last, Meta.
func (r *Run) Message(chunk string, options ...Option) error {
	o := optionsOf(options)
	if o.err != nil {
		return o.err
	}
	return r.send(r.port.message, &textChunk{Node: o.node, Chunk: chunk, Last: o.last, Meta: o.meta})
}
