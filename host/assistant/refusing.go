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

// The bounds of a refusal.
const (
	maxRefusal = 300 // bytes of its text
	maxID      = 256 // bytes of the id of the message that it answers
)

// notHandled is how the SDK's text about a method that there is not begins.
var notHandled = []byte("JSON RPC not handled")

// refusing makes JSON-RPC errors of what the SDK refuses in plain text: a message that is no
// JSON (-32700), no request (-32600), or of a method that there is not (-32601). The status is
// that of the SDK.
type refusing struct {
	http.ResponseWriter
	message []byte
	status  int // of a refusal in plain text; 0 for an answer of the protocol
	text    []byte
}

// Unwrap is for http.ResponseController.
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

// refusal is a response of JSON-RPC without a result.
type refusal struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // null where the message has none that can be read
	Error   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// close writes the refusal, where there is one.
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
	b, _ := json.Marshal(r) // texts and numbers
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(w.status)
	_, _ = w.ResponseWriter.Write(b) // whoever went does not read it
}

// idOf is the id of a message; nil where it has none, or one that is no text or number.
func idOf(message []byte) json.RawMessage {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(message, &m); err != nil || len(m.ID) > maxID || strings.ContainsAny(string(m.ID[:min(len(m.ID), 1)]), "{[tfn") {
		return nil
	}
	return m.ID
}
