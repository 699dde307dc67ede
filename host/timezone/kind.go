// Package timezone is the time zone of this machine as a binding: connectors run in UTC,
// and one that an owner lets ask learns the zone in which the owner's days begin.
package timezone

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// Kind is the time zone among the kinds of bindings.
type Kind struct{ binding.Switch }

// New returns the kind.
func New() Kind {
	return Kind{binding.Switch{
		Binding: abi.BindingTimezone, Module: abi.ModuleTimezone,
		Words: "know the time zone of this machine", Able: "ask for the time zone of this machine",
	}}
}

var (
	_ binding.Kind   = Kind{}
	_ binding.Opener = Kind{}
	_ binding.Reader = Kind{}
)

// part is the part of a manifest: what a connector wants to be told.
type part struct {
	Offset bool // how far from UTC it is now, and no name
}

func partOf(b abi.Binding) (part, error) {
	v, err := strictjson.Parse(b.Members, strictjson.ParseOptions{})
	if err != nil {
		return part{}, &abi.ManifestError{Path: "/runtime_requirements/bindings/timezone", Rule: "object_expected", Want: "an object"}
	}
	as, _ := v.Member("as")
	text, ok := as.Text()
	if !as.Absent() && (!ok || text != "name" && text != "offset") {
		return part{}, &abi.ManifestError{Path: "/runtime_requirements/bindings/timezone/as", Rule: "value_unknown", Want: "one of name, offset"}
	}
	return part{Offset: text == "offset"}, nil
}

// Check implements binding.Reader.
func (Kind) Check(b abi.Binding) error {
	_, err := partOf(b)
	return err
}

// Open implements binding.Opener.
func (k Kind) Open(m *abi.Manifest, c store.Connection) (binding.Binding, error) {
	if len(k.Granted(m, c.Approved)) == 0 {
		return nil, nil
	}
	p, err := partOf(m.Bindings[k.Name()])
	if err != nil {
		return nil, err
	}
	return zone{p, time.Local}, nil
}

// A zone is the binding of one run.
type zone struct {
	part
	at *time.Location
}

// Takes implements binding.Binding.
func (zone) Takes(call abi.Call, _ []byte) bool { return call == abi.CallTimezone }

// Handle implements binding.Binding.
func (z zone) Handle(context.Context, abi.Call, []byte) ([]byte, abi.Errno) {
	name := z.at.String()
	if z.Offset {
		name = time.Now().In(z.at).Format("-07:00")
	}
	reply, err := json.Marshal(map[string]string{"timezone": name})
	if err != nil {
		return nil, abi.EIO
	}
	return reply, abi.OK
}

// Close implements binding.Binding.
func (zone) Close(context.Context) error { return nil }
