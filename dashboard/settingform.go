package dashboard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// A setting is a field of a connection's settings, as the manifest declares it.
type setting struct {
	Name, Title, Help, Type string
	Enum                    []string
	Required                bool
	Value                   string
}

// maxSettings bounds the fields of a form.
const maxSettings = 64

// settingsOf returns the settings that a manifest declares, with the connection's values.
func settingsOf(manifest, values json.RawMessage) []setting {
	var m struct {
		Sluice struct {
			Settings struct {
				Properties map[string]struct {
					Type        json.RawMessage
					Title       string
					Description string
					Enum        []json.RawMessage
					Default     json.RawMessage
				}
				Required []string
			}
		}
	}
	if json.Unmarshal(manifest, &m) != nil {
		return nil
	}
	var has map[string]json.RawMessage
	_ = json.Unmarshal(values, &has) // missing values leave fields empty
	var out []setting
	for _, name := range slices.Sorted(maps.Keys(m.Sluice.Settings.Properties)) {
		p := m.Sluice.Settings.Properties[name]
		s := setting{Name: name, Title: abi.Cut(p.Title, 200), Help: abi.Cut(p.Description, 500), Type: typeOf(p.Type),
			Required: slices.Contains(m.Sluice.Settings.Required, name)}
		for _, e := range p.Enum {
			s.Enum = append(s.Enum, plain(e))
		}
		if s.Value = plain(has[name]); has[name] == nil {
			s.Value = plain(p.Default)
		}
		if out = append(out, s); len(out) == maxSettings {
			break
		}
	}
	return out
}

// typeOf returns the type of a schema; of several the first that is not null.
func typeOf(raw json.RawMessage) string {
	var one string
	var some []string
	if json.Unmarshal(raw, &one) != nil && json.Unmarshal(raw, &some) == nil {
		for _, t := range some {
			if t != "null" {
				return t
			}
		}
	}
	return one
}

// plain returns a value for a field: a text as it is, anything else as JSON.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// settings returns the values of a form with the types of the manifest. The host validates them.
func (f *form) settings(manifest json.RawMessage) json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, s := range settingsOf(manifest, nil) {
		field := "s." + s.Name
		text := strings.TrimSpace(f.raw(field))
		switch {
		case text == "":
		case s.Type == "string":
			out[s.Name], _ = json.Marshal(text)
		case json.Valid([]byte(text)):
			out[s.Name] = json.RawMessage(text)
		default:
			f.fail(field, "of type "+s.Type+", as JSON")
		}
	}
	v, _ := json.Marshal(out)
	return v
}

// settingFields maps the host's names of settings to fields of the form.
func settingFields(manifest json.RawMessage) map[string]string {
	names := map[string]string{}
	for _, s := range settingsOf(manifest, nil) {
		names["settings/"+s.Name] = "s." + s.Name
	}
	return names
}
