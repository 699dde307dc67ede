package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// openAPI describes the routes as an OpenAPI 3.1 document, generated from the table that is served.
func openAPI(routes []route, version string) ([]byte, error) {
	named := newSchemas()
	paths := map[string]map[string]any{}
	for i := range routes {
		r := &routes[i]
		path := r.path()
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.Method)] = operation(r, named)
	}
	document := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title":       "Sluice run API",
			"version":     version,
			"description": "Runs of sandboxed connectors in the shape of openwop 1.0, and the native resources of Sluice.",
			"license":     map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []any{map[string]any{"url": "/", "description": "This host."}},
		"security": []any{map[string]any{"ApiKeyAuth": []string{}}},
		"paths":    paths,
		"components": map[string]any{
			"schemas": named.named,
			"securitySchemes": map[string]any{
				"ApiKeyAuth": map[string]any{"type": "http", "scheme": "bearer",
					"description": "An API key: slk_live_… or slk_test_…"},
			},
			"responses": map[string]any{"Error": map[string]any{
				"description": "A refusal.",
				"content":     content("application/json", named.of(refusal{})),
			}},
		},
	}
	return json.Marshal(document)
}

// refusal is the envelope of every error, for the description.
type refusal struct {
	Error   string         `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

func operation(r *route, named schemas) map[string]any {
	op := map[string]any{
		"operationId": r.operation(),
		"summary":     r.summary,
		"description": r.describe(),
		"responses":   responses(r, named),
	}
	if r.Open {
		op["security"] = []any{}
	}
	if r.Scope != "" {
		op["security"] = []any{map[string]any{"ApiKeyAuth": []string{string(r.Scope)}}}
	}
	if p := r.described(); len(p) > 0 {
		op["parameters"] = p
	}
	switch {
	case r.body != nil:
		op["requestBody"] = map[string]any{"content": content("application/json", named.of(r.body))}
	case r.form != nil:
		op["requestBody"] = map[string]any{"required": true, "content": content("multipart/form-data", form(r.form))}
	}
	return op
}

// describe says who may use a route, which errors are specific to it, and where to read more.
func (r *route) describe() string {
	var text []string
	switch {
	case r.Open:
		text = append(text, "Needs no credential.")
	case r.Owner:
		text = append(text, "For the owner only.")
	case r.Scope != "":
		text = append(text, "Needs the scope "+string(r.Scope)+".")
	}
	if len(r.codes) > 0 {
		text = append(text, "Errors of its own: "+strings.Join(r.codes, ", ")+".")
	}
	return strings.Join(append(text, "See docs/spec/"+r.see+"."), " ")
}

// described returns the parameters of path, query and headers.
func (r *route) described() []any {
	var out []any
	for _, name := range r.parameters() {
		out = append(out, map[string]any{"name": name, "in": "path", "required": true, "schema": schema{"type": "string"}})
	}
	for _, p := range r.query {
		s := schema{"type": p.typ}
		if len(p.words) > 0 {
			s["enum"] = p.words
		}
		if p.repeat {
			s = schema{"type": "array", "items": s}
		}
		out = append(out, map[string]any{"name": p.name, "in": "query", "description": p.text, "schema": s})
	}
	headers := r.headers
	if r.Keyed {
		headers = append([]string{"Idempotency-Key"}, headers...)
	}
	for _, h := range headers {
		out = append(out, map[string]any{"name": h, "in": "header", "schema": schema{"type": "string"}})
	}
	return out
}

func responses(r *route, named schemas) map[string]any {
	out := map[string]any{"default": map[string]any{"$ref": "#/components/responses/Error"}}
	for _, status := range append([]int{r.success()}, r.also...) {
		response := map[string]any{"description": describeStatus(status)}
		switch {
		case r.media != "" && r.answer != nil:
			c := content("application/json", named.of(r.answer))
			c[r.media] = map[string]any{"schema": schema{"type": "string"}}
			response["content"] = c
		case r.media != "":
			c := map[string]any{}
			for media := range strings.SplitSeq(r.media, ", ") {
				c[media] = map[string]any{"schema": schema{"type": "string"}}
			}
			response["content"] = c
		case r.answer != nil:
			response["content"] = content("application/json", named.of(r.answer))
		}
		out[strconv.Itoa(status)] = response
	}
	return out
}

func describeStatus(status int) string {
	words := map[int]string{200: "Done", 201: "Created", 202: "Accepted", 204: "Done, without content", 503: "Not ready"}
	if w, ok := words[status]; ok {
		return w + "."
	}
	return fmt.Sprintf("Status %d.", status)
}

func form(parts []string) schema {
	properties := map[string]schema{}
	for _, p := range parts {
		properties[p] = schema{"type": "string", "contentMediaType": "application/octet-stream"}
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

func content(media string, s schema) map[string]any {
	return map[string]any{media: map[string]any{"schema": s}}
}
