package run

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/run/redact"
)

// A reducedSchema is the part of an input schema that is kept in the timeline.
type reducedSchema struct {
	Type       string                 `json:"type"`
	Properties map[string]schemaField `json:"properties"`
	Required   []string               `json:"required,omitempty"`
}

type schemaField struct {
	Type     string            `json:"type,omitempty"`
	Format   string            `json:"format,omitempty"`
	Accept   string            `json:"accept,omitempty"` // of a file
	Title    string            `json:"title,omitempty"`
	Secret   bool              `json:"secret,omitempty"`
	Delivery string            `json:"delivery,omitempty"`
	Enum     []json.RawMessage `json:"enum,omitempty"`
}

// isFile reports whether the field is answered with a file.
func (f schemaField) isFile() bool { return f.Format == abi.FormatFile && f.Type == "string" }

// acceptable matches an accept member of a file: extensions and media types.
var acceptable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9.+*/, _-]{1,100}$`)
})

// secretLooking reports whether a field is treated as a secret, even if the connector does not declare it as
// one.
func secretLooking(kind, name string, spec strictjson.Value) bool {
	format, _ := spec.Member("format")
	if format.Equal("password") {
		return true
	}
	for _, flag := range []string{"writeOnly", "secret"} {
		v, _ := spec.Member(flag)
		if on, _ := v.Bool(); on {
			return true
		}
	}
	if redact.SecretName(name) {
		return true
	}
	typ, _ := spec.Member("type")
	return kind == abi.KindOTP && (typ.Absent() || typ.Equal("string"))
}

// deliveryOf returns how a field of an answer is delivered to the guest: plain or sealed.
func deliveryOf(m *abi.Manifest, kind, name string, secret bool) string {
	if m.Sluice == nil {
		return "plain"
	}
	if d := m.Sluice.InteractionFields[kind+"."+name]; d.Delivery != "" {
		return d.Delivery
	}
	if secret {
		return "sealed"
	}
	return "plain"
}

// reduce builds the schema that an owner sees for an interaction or an assistance. Names with other characters
// than fieldName allows become field_<n>.
func (qs *questions) reduce(kind string, raw json.RawMessage) *reducedSchema {
	if kind == abi.KindApproval {
		return approvalSchema(raw)
	}
	schema, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	props, _ := schema.Member("properties")
	if err != nil || !props.Is(strictjson.KindObject) {
		return qs.defaultSchema(kind)
	}
	out := &reducedSchema{Type: "object", Properties: map[string]schemaField{}}
	renamed := shownNames(props)
	for name, spec := range props.Members() {
		if len(out.Properties) == abi.MaxSchemaFields {
			break
		}
		out.Properties[renamed[name]] = qs.reduceField(kind, name, spec)
	}
	required, _ := schema.Member("required")
	for item := range required.Items() {
		name, ok := item.Text()
		if _, shown := out.Properties[renamed[name]]; ok && shown && !slices.Contains(out.Required, renamed[name]) {
			out.Required = append(out.Required, renamed[name])
		}
	}
	return out
}

func (qs *questions) reduceField(kind, name string, spec strictjson.Value) schemaField {
	f := schemaField{Secret: secretLooking(kind, name, spec)}
	text := func(name string, most int) string {
		m, _ := spec.Member(name)
		s, _ := m.Text()
		return qs.canary.Assistance(s, most)
	}
	f.Type, f.Format, f.Title = text("type", 20), text("format", 40), text("title", 80)
	if accept, _ := spec.Member("accept"); f.isFile() {
		f.Secret = false // its content is in no event
		if text, ok := accept.Text(); ok && acceptable().MatchString(text) {
			f.Accept = text
		}
	}
	if f.Secret && kind != "" {
		f.Delivery = deliveryOf(qs.plan.manifest, kind, name, true)
	}
	if enum, _ := spec.Member("enum"); !f.Secret {
		for item := range enum.Items() {
			if text, ok := item.Text(); ok && len(f.Enum) < 20 {
				f.Enum = append(f.Enum, strictjson.AppendQuote(nil, qs.canary.Assistance(text, 80)))
			}
		}
	}
	return f
}

// approvalSchema has the decisions that the connector offers beyond accept and reject, and a field for the text
// if the owner may edit it. The rest of the connector's schema is ignored.
func approvalSchema(raw json.RawMessage) *reducedSchema {
	out := &reducedSchema{Type: "object", Required: []string{"action"},
		Properties: map[string]schemaField{"comment": {Type: "string"}}}
	schema, _ := strictjson.Parse(raw, strictjson.ParseOptions{})
	props, _ := schema.Member("properties")
	spec, _ := props.Member("action")
	enum, _ := spec.Member("enum")
	var action schemaField
	for _, d := range abi.Decisions {
		offered := d == abi.DecisionAccept || d == abi.DecisionReject
		for item := range enum.Items() {
			offered = offered || item.Equal(d) && (d != abi.DecisionEdit || len(abi.Draft(raw)) <= abi.MaxDraft)
		}
		if offered {
			action.Enum = append(action.Enum, strictjson.AppendQuote(nil, d))
		}
		if offered && d == abi.DecisionEdit {
			out.Properties["edited"] = schemaField{Type: "string"}
		}
	}
	action.Type = "string"
	out.Properties["action"] = action
	return out
}

// defaultSchema returns the fields of a question without a schema; nil for manual_action.
func (qs *questions) defaultSchema(kind string) *reducedSchema {
	field := func(name string, secret bool) schemaField {
		f := schemaField{Type: "string", Secret: secret}
		if secret {
			f.Delivery = deliveryOf(qs.plan.manifest, kind, name, true)
		}
		return f
	}
	switch kind {
	case abi.KindCredentials:
		return &reducedSchema{Type: "object", Required: []string{"username", "password"},
			Properties: map[string]schemaField{"username": field("username", false), "password": field("password", true)}}
	case abi.KindOTP:
		return &reducedSchema{Type: "object", Required: []string{"code"},
			Properties: map[string]schemaField{"code": field("code", true)}}
	case abi.KindClarification:
		return &reducedSchema{Type: "object", Required: []string{"answer"},
			Properties: map[string]schemaField{"answer": field("answer", false)}}
	}
	return nil
}

func (s *reducedSchema) secret() bool {
	if s == nil {
		return false
	}
	for _, f := range s.Properties {
		if f.Secret {
			return true
		}
	}
	return false
}

// shownNames maps the names of a schema's properties to unique names that an owner sees. Names that fieldName
// does not allow become field_<n>.
func shownNames(props strictjson.Value) map[string]string {
	shown := map[string]string{}
	for name := range props.Members() {
		if fieldName(name) {
			shown[name] = name
		}
	}
	n := 0
	for name := range props.Members() {
		if fieldName(name) {
			continue
		}
		for n++; shown["field_"+itoa(n)] != ""; n++ {
		}
		shown[name] = "field_" + itoa(n)
	}
	return shown
}

func fieldName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
