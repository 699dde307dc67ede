package abi

import (
	"cmp"
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A RecordFilter decides whether a record is inside the granted scope: checks 5 to 8 of
// RECORD. host/scope implements it.
type RecordFilter interface {
	// Admit is called with a well-formed record. It must not keep m.
	Admit(m *RecordMessage) *Violation
}

// A Contract is what the checks of a run's messages depend on.
type Contract struct {
	Scope    Scope
	Manifest *Manifest
	Records  RecordFilter
	// Protected looks for a protected value in a record, check 10 of RECORD; nil if there
	// are none. It must not keep the record.
	Protected   func(*RecordMessage) *Violation
	Interactive bool // START offered the binding
	Stdio       bool
	Limits      Limits
	// NewID makes an id for an ASSISTANCE without one.
	NewID func() string
}

// A Protocol checks the output of a guest, in order, and keeps the state that the checks
// need. It has no other effects; the caller acts on the messages. Host, SDK tests and
// conformance tests share it. It is not safe for concurrent use.
//
// Invariant: after the first violation the phase is Over and everything is refused.
type Protocol struct {
	Contract
	phase         Phase
	streams       map[string]int // name in scope -> index
	names         []string
	counts        map[*kind]int // only of kinds with a limit
	records       int64
	open          []OpenAssistance
	reports       map[[2]string]bool
	scan          strictjson.Scanner
	data          strictjson.Scanner
	line          strictjson.Scanner
	record        RecordMessage
	key           []byte
	tooManyValues bool // the current record has too many values
}

// An OpenAssistance is an ASSISTANCE that has not ended.
type OpenAssistance struct {
	ID      string
	Stream  string
	Message *AssistanceMessage
}

// NewProtocol returns a Protocol in phase Initializing.
func NewProtocol(c Contract) *Protocol {
	p := &Protocol{
		Contract: c,
		streams:  make(map[string]int, len(c.Scope.Streams)),
		counts:   map[*kind]int{},
		reports:  map[[2]string]bool{},
	}
	for i, s := range c.Scope.Streams {
		p.streams[s.Name] = i
		p.names = append(p.names, s.Name)
	}
	p.data.MaxValues = MaxRecordValues
	p.data.Lenient, p.line.Lenient = true, true
	return p
}

// Phase returns the guest's current phase.
func (p *Protocol) Phase() Phase { return p.phase }

// Records returns the number of RECORD messages admitted, deletes included.
func (p *Protocol) Records() int64 { return p.records }

// OpenAssistances returns a copy of the open assistances, oldest first.
func (p *Protocol) OpenAssistances() []OpenAssistance { return slices.Clone(p.open) }

// CloseAssistance removes an open assistance and reports whether it was open.
func (p *Protocol) CloseAssistance(id string) (OpenAssistance, bool) {
	i := slices.IndexFunc(p.open, func(a OpenAssistance) bool { return a.ID == id })
	if i < 0 {
		return OpenAssistance{}, false
	}
	a := p.open[i]
	p.open = slices.Delete(p.open, i, i+1)
	return a, true
}

// Step changes the phase for an event of the host or a side call.
func (p *Protocol) Step(s Step) *Violation { return p.step(s, "") }

func (p *Protocol) step(s Step, typ string) *Violation {
	next, bad := p.phase.Next(s)
	p.phase = next
	if bad != "" {
		return &Violation{Subtype: bad, MessageType: typ}
	}
	return nil
}

// End makes the protocol refuse all further output.
func (p *Protocol) End() { p.phase = Over }

// fail ends the protocol with v.
func (p *Protocol) fail(v *Violation) *Violation {
	p.phase = Over
	return v
}

// Fault returns the violation for malformed bytes of a message. In a phase that allows no
// output it is that phase's violation instead.
func (p *Protocol) Fault(s Subtype, typ, detail string) *Violation {
	v := &Violation{Subtype: s, MessageType: typ, Detail: detail}
	if p.phase == Waiting || p.phase == Finishing || p.phase == Over {
		_, v.Subtype = p.phase.Next(StepMessage)
		v.Detail = string(s)
	}
	return p.fail(v)
}

// syntax returns the violation for an error of the scanner.
func (p *Protocol) syntax(err error, typ string) *Violation {
	return p.Fault(faultSubtype(err), typ, err.Error())
}

func faultSubtype(err error) Subtype {
	e, ok := err.(*strictjson.SyntaxError)
	if !ok {
		return VFrameMalformed
	}
	switch e.Fault {
	case strictjson.FaultUTF8:
		return VFrameInvalidUtf8
	case strictjson.FaultDepth:
		return VFrameTooDeep
	case strictjson.FaultNotObject:
		return VFrameNotObject
	case strictjson.FaultValues:
		return VRecordTooLarge
	default:
		return VFrameInvalidJson
	}
}

// Line checks one stdio line without its line feed. The message aliases line and is valid
// until the next call.
func (p *Protocol) Line(line []byte) (Message, *Violation) {
	if len(line) > p.Limits.FrameBytes {
		return nil, p.Fault(VFrameTooLarge, "", "")
	}
	members, err := p.line.Object(line)
	if err != nil {
		return nil, p.syntax(err, "")
	}
	typ, isText := "", false
	for _, m := range members {
		if string(m.Name) == "type" && m.Kind == strictjson.KindString {
			typ, isText = strictjson.String(m.Value), true
		}
	}
	k := kindOf(typ)
	if k == &recordKind {
		return p.recordLine(members)
	}
	if p.line.Misspelt != nil {
		return nil, p.syntax(p.line.Misspelt, "")
	}
	if k == nil { // its type is the guest's text, which no violation repeats as the message type
		if v := p.step(StepMessage, ""); v != nil {
			return nil, p.fail(v)
		}
		v := &Violation{Subtype: VUnknownMessageType}
		if isText {
			v.Received = typ
		}
		return nil, p.fail(v)
	}
	return p.read(k, line)
}

// Message checks the argument of a message function other than emit, message and log. The
// result aliases payload.
func (p *Protocol) Message(call Call, payload []byte) (Message, *Violation) {
	k := kindOfCall(call)
	if k == nil || k.read == nil {
		return nil, p.Fault(VAbiFault, "", "no message function")
	}
	if len(payload) > p.Limits.FrameBytes {
		return nil, p.Fault(VFrameTooLarge, k.name, "")
	}
	if _, err := p.scan.Object(payload); err != nil {
		return nil, p.syntax(err, k.name)
	}
	return p.read(k, payload)
}

// read checks the phase, the limit and the members of a message.
func (p *Protocol) read(k *kind, raw []byte) (Message, *Violation) {
	if v := p.step(k.step, k.name); v != nil {
		return nil, p.fail(v)
	}
	if v := p.count(k); v != nil {
		return nil, p.fail(v)
	}
	tree, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return nil, p.syntax(err, k.name)
	}
	r := &reader{p: p, typ: k.name, msg: tree}
	m := k.read(r)
	if r.bad != nil {
		r.bad.Stream = cmp.Or(r.bad.Stream, r.in)
		return nil, p.fail(r.bad.Bound())
	}
	return m, nil
}

// Side checks the argument of message and log. These are not protocol messages, so the
// caller answers a wrong shape with EINVAL, but their bytes pass the same checks.
func (p *Protocol) Side(typ string, payload []byte) (strictjson.Value, *Violation) {
	if len(payload) > p.Limits.FrameBytes {
		return strictjson.Value{}, p.Fault(VFrameTooLarge, typ, "")
	}
	v, err := p.scan.Parse(payload, false)
	if err != nil {
		return strictjson.Value{}, p.syntax(err, typ)
	}
	if bad := p.step(StepSide, typ); bad != nil {
		return strictjson.Value{}, p.fail(bad)
	}
	return v, nil
}

// count enforces the limit of messages per run.
func (p *Protocol) count(k *kind) *Violation {
	if k.limit == nil {
		return nil
	}
	p.counts[k]++
	if max := k.limit(p.Limits); max > 0 && p.counts[k] > max {
		return &Violation{Subtype: VMessageLimitExceeded, MessageType: k.name, Detail: "limit " + itoa(int64(max))}
	}
	return nil
}
