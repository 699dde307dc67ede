//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/host/scope"
)

// A host is the fake host of one run.
type host struct {
	t          testing.TB
	options    Options
	protocol   *abi.Protocol
	first      []byte // START
	result     *Result
	transcript strings.Builder
	handles    handles
	hosts      []string
	cancelled  bool
	assistance int // number given out so far, for ids
	manifest   *abi.Manifest
	writing    map[uint32]*attachment // files that arrive in parts
	written    uint32                 // last handle given out in writing
}

var _ guest.Host = (*host)(nil)

// open returns the host for one run.
func open(t testing.TB, o Options) (*host, error) {
	m, err := abi.ReadManifest(o.Manifest)
	if err != nil {
		return nil, err
	}
	h := &host{t: t, options: o, manifest: m, writing: map[uint32]*attachment{},
		hosts: m.Bindings[abi.BindingNetwork].Hosts}
	h.result = &Result{Records: map[string][]Record{}, States: map[string]json.RawMessage{}, Files: map[string][]byte{}}
	start, err := h.start(m)
	if err != nil {
		return nil, err
	}
	if h.first, err = json.Marshal(start); err != nil {
		return nil, err
	}
	limits := abi.DefaultLimits()
	if o.Limits != nil {
		limits = *o.Limits
	}
	h.protocol = abi.NewProtocol(abi.Contract{
		Scope: start.Scope, Manifest: m, Records: scope.NewFilter(start.Scope, m),
		Interactive: start.Bindings.Interactive != nil, Limits: limits, NewID: h.newID,
	})
	return h, nil
}

func (h *host) newID() string {
	h.assistance++
	return fmt.Sprintf("asst_%016x", h.assistance)
}

// Call implements guest.Host.
func (h *host) Call(call abi.Call, request []byte) ([]byte, error) {
	if err := h.refused(call); err != nil {
		return nil, err
	}
	switch call {
	case abi.CallStart:
		return h.hand()
	case abi.CallEmit:
		h.frame(request)
		return nil, nil // the next call returns a violation
	case abi.CallMessage, abi.CallLog:
		return nil, h.side(call, request)
	case abi.CallAttach, abi.CallAttachPart:
		return h.attach(call, request)
	case abi.CallNetworkExchange:
		return h.exchange(request)
	case abi.CallBrowser:
		return h.browser(request)
	default:
		return h.message(call, request)
	}
}

// refused returns the error of any call after the end of the run or its cancellation.
func (h *host) refused(call abi.Call) error {
	if h.result.Violation != nil {
		return guest.NewError(abi.EPROTO, string(h.result.Violation.Subtype), h.result.Violation.Error())
	}
	if call == abi.CallStart {
		return nil
	}
	if !h.cancelled && h.options.Cancel != nil && h.options.Cancel(call) {
		h.cancelled = true
		h.line("CANCEL")
	}
	if h.cancelled {
		return guest.NewError(abi.ECANCELED, "run_cancelled", "the owner cancelled the run")
	}
	return nil
}

// hand serves the start call.
func (h *host) hand() ([]byte, error) {
	if v := h.protocol.Step(abi.StepStart); v != nil {
		return nil, h.violate(v)
	}
	var s abi.Start
	if err := json.Unmarshal(h.first, &s); err != nil {
		return nil, err
	}
	names := make([]string, len(s.Scope.Streams))
	for i, st := range s.Scope.Streams {
		names[i] = st.Name
	}
	h.line("START %s %s", s.CollectionMode, strings.Join(names, ","))
	return h.first, nil
}

// message serves calls that take a message.
func (h *host) message(call abi.Call, request []byte) ([]byte, error) {
	m, v := h.protocol.Message(call, []byte(string(request)))
	if v != nil {
		return nil, h.violate(v)
	}
	reply, err := h.take(m)
	if err != nil {
		return nil, guest.NewError(abi.EIO, "guesttest", err.Error())
	}
	return reply, nil
}

// violate ends the run.
func (h *host) violate(v *abi.Violation) error {
	if h.result.Violation == nil {
		h.result.Violation = v.Bound()
		h.line("VIOLATION %s %s", v.Subtype, v.Error())
	}
	return guest.NewError(abi.EPROTO, string(v.Subtype), v.Error())
}

// line adds a line to the transcript.
func (h *host) line(format string, args ...any) {
	fmt.Fprintf(&h.transcript, format+"\n", args...)
}
