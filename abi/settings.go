package abi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// Settings describe the configuration of a connection. A setting is never a secret.
type Settings struct {
	Properties []Setting
	Required   []string
}

// A Setting is one member of the configuration.
type Setting struct {
	Name  string
	Type  string // string, integer, number, boolean, array, object or json
	Title string
	Env   []string
	Enum  []string // allowed values as compact JSON; empty means any
	// Minimum and Maximum bound an integer or a number; nil means no bound.
	Minimum, Maximum *float64
	// Default is what the connector assumes if the setting is absent. It is only shown: the
	// host does not add it to the configuration.
	Default json.RawMessage
}

// A SettingError names the setting that is missing or wrong. It is reported as
// setting_missing.
type SettingError struct{ Name, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %q: %s", e.Name, e.Want)
}

func (r *manifestReader) settings(a at) *Settings {
	r.oneOf(a.member("type"), false, "object")
	s := &Settings{Required: r.texts(a.member("required"), 256)}
	props := a.member("properties")
	if !r.object(props, false) {
		return s
	}
	if n := props.Value.Len(); n > 256 {
		r.fail(props, "settings_too_many", "at most 256 properties")
		return s
	}
	for name := range props.Members() {
		p := props.member(name)
		if !r.object(p, true) {
			return s
		}
		st := Setting{
			Name: name, Title: r.text(p.member("title"), 200, false), Env: r.env(p.member("env")),
			Type: r.oneOf(p.member("type"), true, "string", "integer", "number", "boolean", "array", "object", "json"),
		}
		r.list(p.member("enum"), 64, func(i at) {
			st.Enum = append(st.Enum, string(strictjson.AppendCompact(nil, i.Raw)))
		})
		r.bounds(&st, p)
		s.Properties = append(s.Properties, st)
	}
	return s
}

// bounds reads the bounds of a setting and its default, which must be within them.
func (r *manifestReader) bounds(st *Setting, p at) {
	st.Minimum, st.Maximum = r.bound(st.Type, p.member("minimum")), r.bound(st.Type, p.member("maximum"))
	if st.Minimum != nil && st.Maximum != nil && *st.Minimum > *st.Maximum {
		r.fail(p.member("maximum"), "setting_bound_invalid", "a number not below minimum")
	}
	v := p.member("default")
	if v.Absent() {
		return
	}
	if err := st.check(v.Value); err != nil {
		r.fail(v, "setting_default_invalid", "a value that the setting takes")
	}
	st.Default = strictjson.AppendCompact(nil, v.Raw)
}

func (r *manifestReader) bound(typ string, v at) *float64 {
	if v.Absent() {
		return nil
	}
	f, ok := v.Float64()
	if !ok || typ != "integer" && typ != "number" {
		r.fail(v, "setting_bound_invalid", "a number, for a setting of type integer or number")
	}
	return &f
}

// Known refuses a member whose name is close to that of a setting, and so probably
// misspelled. It is for configuration that is being entered; stored configuration may
// belong to an earlier version of the connector. Other unknown members pass. The error is a
// *SettingError.
func (s *Settings) Known(config strictjson.Value) error {
	if s == nil {
		return nil
	}
	var names []string
	for _, p := range s.Properties {
		names = append(names, p.Name)
	}
	for name := range config.Members() {
		if near := Nearest(name, names); near != "" && !slices.Contains(names, name) {
			return &SettingError{Cut(Clean(name), 128), "is no setting of this connector; did you mean " + near + "?"}
		}
	}
	return nil
}

// Check validates a configuration. Members that the manifest does not describe pass.
// Without settings in the manifest any object is valid.
func (s *Settings) Check(config strictjson.Value) error {
	if s == nil {
		return nil
	}
	for _, name := range s.Required {
		i := slices.IndexFunc(s.Properties, func(p Setting) bool { return p.Name == name })
		v, present := config.Member(name)
		isJSON := i >= 0 && s.Properties[i].Type == "json"
		if i >= 0 && s.Properties[i].Default != nil {
			continue
		}
		if !present || v.Absent() && !isJSON {
			return &SettingError{name, "is required; give it with --config '{\"" + name + "\": …}'"}
		}
	}
	for _, p := range s.Properties {
		v, present := config.Member(p.Name)
		if !present || v.Absent() {
			continue
		}
		if err := p.check(v); err != nil {
			return err
		}
	}
	return nil
}

func (p Setting) check(v strictjson.Value) error {
	if !v.HasType(p.Type) {
		return &SettingError{p.Name, "want " + p.Type + ", have " + v.Kind.String()}
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, string(strictjson.AppendCompact(nil, v.Raw))) {
		return &SettingError{p.Name, "want one of " + strings.Join(p.Enum, ", ")}
	}
	f, isNumber := v.Float64()
	switch {
	case isNumber && p.Minimum != nil && f < *p.Minimum:
		return &SettingError{p.Name, "want at least " + number(*p.Minimum)}
	case isNumber && p.Maximum != nil && f > *p.Maximum:
		return &SettingError{p.Name, "want at most " + number(*p.Maximum)}
	}
	return nil
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
