package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
)

// manifest builds the manifest of a scenario from its short form. A stream
// line is "stream NAME key=value …":
//
//	key=id,day        the primary key; default id
//	fields=a,n:number  properties; default id, value, name, at, n. Without a type: any
//	required=…         schema.required
//	time=at           consent_time_field
//	resource=name     selection.resource_field
//	state=P           state_stream and its strategy; parents=P,Q likewise
//	check             reject records that do not match the schema
func (s *scenario) manifest() ([]byte, error) {
	m := map[string]any{
		"protocol_version": "0.1.0", "connector_id": "player", "version": "1.0.0", "display_name": "Player",
		"capabilities": map[string]any{"human_interaction": []string{"otp", "credentials", "manual_action",
			"approval", "clarification"}},
	}
	lines := s.all("stream")
	if len(lines) == 0 {
		lines = []string{"items"}
	}
	streams := []any{}
	for _, l := range lines {
		st, err := stream(l)
		if err != nil {
			return nil, err
		}
		streams = append(streams, st)
	}
	m["streams"] = streams
	for _, extra := range s.all("manifest") {
		if err := json.Unmarshal([]byte(extra), &m); err != nil {
			return nil, fmt.Errorf("manifest %s: %w", extra, err)
		}
	}
	return json.Marshal(m)
}

func stream(line string) (map[string]any, error) {
	f := strings.Fields(line)
	o := map[string]string{"key": "id", "fields": "id:string,value,name:string,at:date-time,n:number"}
	for _, opt := range f[1:] {
		k, v, _ := strings.Cut(opt, "=")
		o[k] = v
	}
	schema := map[string]any{"type": "object", "properties": properties(o["fields"])}
	if r, ok := o["required"]; ok {
		schema["required"] = strings.Split(r, ",")
	}
	st := map[string]any{"name": f[0], "semantics": "mutable_state",
		"primary_key": strings.Split(o["key"], ","), "schema": schema}
	for opt, member := range map[string]string{"time": "consent_time_field", "state": "state_stream",
		"strategy": "coverage_strategy"} {
		if v, ok := o[opt]; ok {
			st[member] = v
		}
	}
	if _, ok := o["state"]; ok && o["strategy"] == "" {
		st["coverage_strategy"] = "checkpoint_window"
	}
	if v, ok := o["parents"]; ok {
		st["parent_streams"] = strings.Split(v, ",")
		st["coverage_strategy"] = "parent_detail_accounting"
	}
	if v, ok := o["resource"]; ok {
		st["selection"] = map[string]any{"resources": true, "resource_field": v}
	}
	if v, ok := o["availability"]; ok {
		st["availability"] = map[string]any{"state": v}
	}
	if _, ok := o["check"]; ok {
		st["validate_records"] = true
	}
	return st, nil
}

func properties(list string) map[string]any {
	out := map[string]any{}
	for _, f := range strings.Split(list, ",") {
		name, typ, _ := strings.Cut(f, ":")
		switch typ {
		case "":
			out[name] = map[string]any{}
		case "date-time":
			out[name] = map[string]any{"type": []string{"string", "null"}, "format": typ}
		default:
			out[name] = map[string]any{"type": typ}
		}
	}
	return out
}
