package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A schema is a JSON Schema of draft 2020-12, which OpenAPI 3.1 uses.
type schema map[string]any

// schemas holds the named schemas, one for each Go struct that the API reads or writes, so that the
// description matches the encoding. If two packages have a struct of the same name, the second is
// prefixed with its package.
type schemas struct {
	named map[string]schema
	types map[string]reflect.Type
}

func newSchemas() schemas {
	return schemas{named: map[string]schema{}, types: map[string]reflect.Type{}}
}

// A described type provides its own schema.
type described interface{ Schema() map[string]any }

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	ownType  = reflect.TypeFor[json.Marshaler]()
)

// of returns the schema of a Go value as encoding/json writes it, with a reference for structs. nil
// stands for any JSON.
func (s schemas) of(v any) schema {
	if v == nil {
		return schema{}
	}
	return s.typ(reflect.TypeOf(v))
}

func (s schemas) typ(t reflect.Type) schema {
	if d, ok := reflect.Zero(t).Interface().(described); ok && t.Kind() != reflect.Pointer {
		return d.Schema()
	}
	switch {
	case t == timeType:
		return schema{"type": "string", "format": "date-time"}
	case t == rawType:
		return schema{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.typ(t.Elem())
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Slice, reflect.Array:
		return schema{"type": "array", "items": s.typ(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.typ(t.Elem())}
	case reflect.Struct:
		if t.Implements(ownType) {
			return selfEncoded(t)
		}
		return s.object(t)
	}
	return schema{}
}

// selfEncoded describes a struct that encodes itself, by the members of its zero value. It may have
// others.
func selfEncoded(t reflect.Type) schema {
	var members map[string]any
	text, err := json.Marshal(reflect.Zero(t).Interface())
	if err != nil || json.Unmarshal(text, &members) != nil {
		return schema{}
	}
	properties := map[string]schema{}
	for name := range members {
		properties[name] = schema{}
	}
	return schema{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(members))}
}

// object describes a struct and returns a reference. Unnamed structs are described in place.
func (s schemas) object(t reflect.Type) schema {
	name := schemaName(t)
	if name == "" {
		return s.members(t)
	}
	if other := s.types[name]; other != nil && other != t {
		room := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
		name = strings.ToUpper(room[:1]) + room[1:] + name
	}
	if s.types[name] == nil {
		s.types[name] = t // before its members, since a type may contain itself
		s.named[name] = s.members(t)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

// schemaName returns the name of a struct; that of a generic one ends with its type argument.
func schemaName(t reflect.Type) string {
	name, args, generic := strings.Cut(t.Name(), "[")
	if generic {
		parts := strings.FieldsFunc(args, func(r rune) bool { return strings.ContainsRune("./[]*, ", r) })
		name += "Of" + parts[len(parts)-1]
	}
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

func (s schemas) members(t reflect.Type) schema {
	properties, required := map[string]schema{}, []string{}
	s.collect(t, properties, &required)
	out := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// collect follows encoding/json: embedded structs contribute their members, omitempty and omitzero
// make a member optional, and a pointer that is always written may be null.
func (s schemas) collect(t reflect.Type, into map[string]schema, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			s.collect(indirect(f.Type), into, required)
			continue
		case name == "":
			name = f.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		member := s.typ(f.Type)
		if !optional {
			*required = append(*required, name)
			if f.Type.Kind() == reflect.Pointer {
				member = schema{"anyOf": []schema{member, {"type": "null"}}}
			}
		}
		into[name] = annotated(member, f.Tag)
	}
}

// annotated adds the contents of tags: doc, enum (separated by bars), format.
func annotated(member schema, tag reflect.StructTag) schema {
	extra := schema{}
	if text := tag.Get("doc"); text != "" {
		extra["description"] = text
	}
	if words := tag.Get("enum"); words != "" {
		extra["enum"] = strings.Split(words, "|")
	}
	if format := tag.Get("format"); format != "" {
		extra["format"] = format
	}
	if len(extra) == 0 {
		return member
	}
	if _, isRef := member["$ref"]; !isRef {
		member = maps.Clone(member)
	}
	maps.Copy(member, extra)
	return member
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
