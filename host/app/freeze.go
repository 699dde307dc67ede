package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/scope"
)

// maxGrantScope bounds the scope of an approval, in bytes.
const maxGrantScope = abi.MiB

// A streamView is a view of a stream: a list of its fields under an id.
type streamView struct {
	id     string
	fields []string
}

// viewsOf returns the views of a stream in a valid manifest.
func viewsOf(m *abi.Manifest, stream string) []streamView {
	root, err := strictjson.Parse(m.Raw, strictjson.ParseOptions{})
	if err != nil {
		return nil
	}
	streams, _ := root.Member("streams")
	var out []streamView
	for st := range streams.Items() {
		if name, _ := st.Member("name"); !name.Equal(stream) {
			continue
		}
		views, _ := st.Member("views")
		if !views.Is(strictjson.KindArray) {
			return nil
		}
		for v := range views.Items() {
			id, _ := v.Member("id")
			text, _ := id.Text()
			fields, _ := textsOf(v, "fields")
			out = append(out, streamView{text, fields})
		}
	}
	return out
}

// textsOf reads a list of texts. It reports false if the member is not such a list or is too long.
func textsOf(v strictjson.Value, name string) (out []string, ok bool) {
	list, _ := v.Member(name)
	if !list.Is(strictjson.KindArray) {
		return nil, false
	}
	out = []string{}
	for i := range list.Items() {
		text, ok := i.Text()
		if !ok || len(out) == abi.MaxScopeFields {
			return nil, false
		}
		out = append(out, text)
	}
	return out, true
}

// freeze rewrites the scope that an owner approves so that a later version of the manifest cannot widen it: *
// becomes the list of current streams, a view its list of fields. Null stays null and means everything declared;
// a version that declares more needs a new approval. The error is a *host.Refusal that repeats nothing from the
// request.
func freeze(m *abi.Manifest, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if len(raw) > maxGrantScope {
		return nil, invalid("scope", "too_large", "want at most %d bytes", maxGrantScope)
	}
	root, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return nil, invalid("scope", "object", `want null, or an object {"streams": […]}`)
	}
	for name := range root.Members() {
		if name != "streams" {
			return nil, invalid("scope", "member_unknown", "want streams and nothing else")
		}
	}
	list, _ := root.Member("streams")
	if !list.Is(strictjson.KindArray) || list.Len() == 0 {
		return nil, invalid("scope.streams", "scope_empty", "want at least one stream; null is everything declared")
	}
	if list.Len() > abi.MaxScopeStreams {
		return nil, invalid("scope.streams", "scope_too_large", "want at most %d streams", abi.MaxScopeStreams)
	}
	out := []byte(`{"streams":[`)
	n := 0
	for item := range list.Items() {
		f := freezer{m: m, item: item, path: fmt.Sprintf("scope.streams[%d]", n), alone: list.Len() == 1}
		if out, err = f.append(out); err != nil {
			return nil, err
		}
		n++
	}
	out = append(out, "]}"...)
	_, err = scope.Normalise(scope.Request{Manifest: m, Explicit: out})
	var bad *scope.Error
	if errors.As(err, &bad) {
		return nil, invalid("scope."+bad.Member, bad.Code, "it is not what a scope has there").With("code", bad.Code)
	}
	return out, err
}

// A freezer freezes one entry of a scope.
type freezer struct {
	m     *abi.Manifest
	item  strictjson.Value
	path  string
	alone bool
}

func (f *freezer) append(out []byte) ([]byte, error) {
	if !f.item.Is(strictjson.KindObject) {
		return nil, invalid(f.path, "object", "want an object with the name of a stream")
	}
	for member := range f.item.Members() {
		if !slices.Contains([]string{"name", "fields", "view", "resources", "time_range"}, member) {
			return nil, invalid(f.path, "member_unknown", "want name, fields or view, resources, time_range and nothing else")
		}
	}
	name, _ := f.item.Member("name")
	text, ok := name.Text()
	if ok && text == "*" {
		return f.all(out)
	}
	if !ok || !f.m.Declares(text) {
		return nil, invalid(f.path+".name", "scope_stream_unknown",
			"want the name of a stream that the connector declares").With("code", "scope_stream_unknown")
	}
	fields, restricted, err := f.fields(text)
	if err != nil {
		return nil, err
	}
	return f.entry(out, text, fields, restricted), nil
}

// all appends every stream of the manifest for the entry *.
func (f *freezer) all(out []byte) ([]byte, error) {
	if !f.alone {
		return nil, invalid(f.path+".name", "scope_wildcard", "* stands alone")
	}
	for _, member := range []string{"fields", "view", "resources"} {
		if v, _ := f.item.Member(member); !v.Absent() {
			return nil, invalid(f.path+"."+member, "scope_wildcard", "* has no %s: streams differ", member)
		}
	}
	span, _ := f.item.Member("time_range")
	for _, st := range f.m.Streams {
		if out = f.entry(out, st.Name, nil, false); st.ConsentTimeField == "" && !span.Absent() {
			return nil, invalid(f.path+".time_range", "scope_time_range_unsupported",
				"records of %s have no time that a range could be held against; name the streams that have one", st.Name)
		}
	}
	return out, nil
}

// fields returns the fields of the entry or of its view. restricted is false if all fields are granted.
func (f *freezer) fields(stream string) (fields []string, restricted bool, err error) {
	listed, _ := f.item.Member("fields")
	view, _ := f.item.Member("view")
	switch {
	case !listed.Absent() && !view.Absent():
		return nil, false, invalid(f.path+".view", "view_and_fields", "want a view or fields, not both")
	case !view.Absent():
		id, ok := view.Text()
		views := viewsOf(f.m, stream)
		i := slices.IndexFunc(views, func(v streamView) bool { return v.id == id })
		if !ok || i < 0 {
			return nil, false, invalid(f.path+".view", "view_unknown", "want the id of a view of this stream")
		}
		return views[i].fields, true, nil
	case listed.Absent():
		return nil, false, nil
	}
	fields, ok := textsOf(f.item, "fields")
	if !ok {
		return nil, false, invalid(f.path+".fields", "scope_fields_invalid", "want a list of at most %d field names",
			abi.MaxScopeFields).With("code", "scope_fields_invalid")
	}
	known := f.m.Stream(stream).Properties
	for _, name := range fields {
		if _, ok := known[name]; !ok {
			return nil, false, invalid(f.path+".fields", "field_unknown", "want names of fields that the stream declares")
		}
	}
	return fields, true, nil
}

// entry appends one stream. Resources and time range are checked by scope.Normalise.
func (f *freezer) entry(out []byte, stream string, fields []string, restricted bool) []byte {
	if out[len(out)-1] != '[' {
		out = append(out, ',')
	}
	out = strictjson.AppendQuote(append(out, `{"name":`...), stream)
	if restricted {
		out = append(out, `,"fields":[`...)
		for i, name := range fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = strictjson.AppendQuote(out, name)
		}
		out = append(out, ']')
	}
	for _, member := range []string{"resources", "time_range"} {
		if v, _ := f.item.Member(member); !v.Absent() {
			out = append(strictjson.AppendQuote(append(out, ','), member), ':')
			out = strictjson.AppendCompact(out, v.Raw)
		}
	}
	return append(out, '}')
}
