//go:build !wasip1

package guesttest

import (
	"net/http"

	"github.com/sluicehost/sluice/abi"
)

// Options say what the host offers the connector. Only Manifest is needed.
type Options struct {
	// Manifest is the connector's manifest.json. It is validated.
	Manifest []byte
	// Scope is the scope asked for, as in a start request:
	// {"streams":[{"name":"notes","fields":["id"]}]}. Empty asks for all that the
	// manifest declares. It is normalised as by a real host (§6.2).
	Scope string
	// State holds cursors by stream: anything that marshals to a JSON object.
	State map[string]any
	// Config is the connection's settings, anything that marshals to a JSON
	// object. It is checked against the manifest.
	Config any
	// Secrets are delivered plain, by name.
	Secrets map[string]string
	// Gaps are pending detail gaps offered to the run (R98).
	Gaps []abi.ServedGap
	// Mode is the collection mode. Empty: incremental when there is a state.
	Mode string

	// Answers are what the owner says, one per question, in order.
	Answers []Answer
	// Owner answers instead of Answers.
	Owner func(q abi.InteractionMessage) Answer
	// NotInteractive leaves the interactive binding out of START (R22).
	NotInteractive bool

	// Files are directories of the host by the name of a mount of the manifest.
	Files map[string]string
	// Network answers requests of the network binding that go to the hosts the
	// manifest lists. Nil: every request is refused.
	Network http.Handler
	// Browser answers calls of the browser binding. Nil: every call is refused.
	Browser func(request []byte) (reply []byte, err error)

	// Cancel is asked before every call but start; true cancels the run there,
	// as its owner could (§19.3).
	Cancel func(call abi.Call) bool
	// Limits replace the defaults of §23.
	Limits *abi.Limits
	// WantViolation is the violation that the test is about. Without one any
	// violation fails the test, and with one its absence does.
	WantViolation abi.Subtype
}
