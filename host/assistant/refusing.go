package assistant

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/sluicehost/sluice/abi"
)

// Limits of a refusal.
const (
	maxRefusal = 300 // bytes of its text
	maxID      = 256 // bytes of the message's id
)

// notHandled is the beginning of the SDK's text about an unknown method.
var notHandled = []byte("JSON RPC not handled")

// A refusing converts refusals of the SDK in plain text to JSON-RPC errors: for a message that is not JSON (-32700),
// not a request (-32600), or for an unknown method (-32601). It keeps the SDK's status.
type refusing struct {
	http.ResponseWriter
	message []byte
	status  int // of a refusal in plain text, otherwise 0
	text    []byte
}

// Unwrap returns the original writer, for http.ResponseController.
func (w *refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *refusing) WriteHeader(status int) {
	kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if status >= 400 && kind == "text/plain" {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusing) Write(b []byte) (int, error) {
	if w.status == 0 {
		return w.ResponseWriter.Write(b)
	}
	w.text = append(w.text, b[:min(len(b), maxRefusal-len(w.text))]...)
	return len(b), nil
}

// A refusal is a JSON-RPC response without a result.
type refusal struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // null if the message has no readable id
	Error   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// close writes the refusal, if there is one.
func (w *refusing) close() {
	if w.status == 0 {
		return
	}
	r := refusal{Version: "2.0", ID: idOf(w.message)}
	r.Error.Code, r.Error.Message = jsonrpc.CodeInvalidRequest, abi.Clean(string(w.text))
	switch {
	case !json.Valid(w.message):
		r.Error.Code = jsonrpc.CodeParseError
	case bytes.HasPrefix(w.text, notHandled):
		r.Error.Code = jsonrpc.CodeMethodNotFound
	}
	b, _ := json.Marshal(r) // cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(w.status)
	_, _ = w.ResponseWriter.Write(b) // the client may have gone
}

// idOf returns the id of a message, or nil if it has none that is a string or number.
func idOf(message []byte) json.RawMessage {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(message, &m); err != nil || len(m.ID) > maxID ||
		strings.ContainsAny(string(m.ID[:min(len(m.ID), 1)]), "{[tfn") {
		return nil
	}
	return m.ID
}
