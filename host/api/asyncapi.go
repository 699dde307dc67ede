package api

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluicehost/sluice/host/timeline"
)

// asyncAPI describes the event streams as AsyncAPI 3, generated from the catalogue that the streams
// follow.
func asyncAPI(version string) ([]byte, error) {
	messages := map[string]any{}
	byMode := map[timeline.Modes]map[string]any{timeline.Updates: {}, timeline.Values: {},
		timeline.Messages: {}, timeline.Debug: {}}
	for _, e := range timeline.Catalogue() {
		name := messageName(e.Type)
		messages[name] = eventMessage(e)
		for _, mode := range []timeline.Modes{timeline.Updates, timeline.Debug} {
			if e.Modes.Has(mode) {
				byMode[mode][name] = ref("#/components/messages/" + name)
			}
		}
	}
	for mode, m := range map[timeline.Modes]timeline.Type{timeline.Values: timeline.StateSnapshot,
		timeline.Messages: timeline.AIMessageChunk} {
		name := messageName(m)
		messages[name] = map[string]any{"name": string(m), "title": name, "contentType": "application/json",
			"payload": madeForStream[m],
			"summary": "Made for the stream; it stands in no log."}
		byMode[mode][name] = ref("#/components/messages/" + name)
	}
	channels, operations := map[string]any{}, map[string]any{}
	for mode, title := range map[timeline.Modes]string{timeline.Updates: "Updates", timeline.Values: "Values",
		timeline.Messages: "Messages", timeline.Debug: "Debug"} {
		channel := "runEvents" + title
		channels[channel] = map[string]any{
			"address": "/runs/{runId}/events", "title": channel, "messages": byMode[mode],
			"parameters": map[string]any{"runId": ref("#/components/parameters/RunId")},
		}
		operations["subscribe"+title] = operationOf(channel, strings.ToLower(title))
	}
	return yaml.Marshal(map[string]any{
		"asyncapi": "3.0.0",
		"info": map[string]any{"title": "Sluice run events", "version": version,
			"description": "The events of a run, as server-sent events."},
		"defaultContentType": "text/event-stream",
		"servers": map[string]any{"host": map[string]any{
			"host": "{host}", "protocol": "https", "pathname": "/v1",
			"security":  []any{ref("#/components/securitySchemes/ApiKeyAuth")},
			"variables": map[string]any{"host": map[string]any{"default": "127.0.0.1:7373"}},
		}},
		"channels": channels, "operations": operations,
		"components": map[string]any{
			"messages":   messages,
			"parameters": map[string]any{"RunId": map[string]any{"description": "An opaque id."}},
			"securitySchemes": map[string]any{"ApiKeyAuth": map[string]any{
				"type": "httpApiKey", "in": "header", "name": "Authorization",
				"description": "Bearer and an API key with the scope runs:read.",
			}},
		},
	})
}

// madeForStream has the payloads of events that are only in streams and in no log.
var madeForStream = map[timeline.Type]map[string]any{
	timeline.StateSnapshot: {
		"type": "object", "required": []string{"runId", "workflowId", "status", "nodeStates", "variables", "channels"},
		"properties": map[string]any{
			"runId": typed("string"), "workflowId": typed("string"), "status": typed("string"), "currentNodeId": typed("string"),
			"nodeStates": typed("object"), "variables": typed("object"), "channels": typed("object"),
		},
	},
	timeline.AIMessageChunk: {
		"type": "object", "required": []string{"nodeId", "runId", "chunk", "isLast"},
		"properties": map[string]any{
			"nodeId": typed("string"), "runId": typed("string"), "chunk": typed("string"), "isLast": typed("boolean"),
			"meta": typed("object"),
		},
	},
}

func typed(name string) map[string]any { return map[string]any{"type": name} }

func operationOf(channel, mode string) map[string]any {
	query := map[string]any{"type": "object",
		"properties": map[string]any{"streamMode": map[string]any{"type": "string", "enum": []string{mode}}}}
	if mode != "updates" {
		query["required"] = []string{"streamMode"}
	}
	return map[string]any{
		"action": "receive", "channel": ref("#/channels/" + channel),
		"bindings": map[string]any{"http": map[string]any{"method": "GET", "query": query}},
	}
}

// eventMessage describes one row of the catalogue.
func eventMessage(e timeline.Entry) map[string]any {
	payload := map[string]any{"type": "object"}
	if len(e.Required) > 0 {
		payload["required"] = e.Required
	}
	if e.Closed {
		properties := map[string]any{}
		for _, m := range append(append([]string{}, e.Required...), e.Optional...) {
			properties[m] = map[string]any{}
		}
		payload["properties"], payload["additionalProperties"] = properties, false
	}
	return map[string]any{
		"name": string(e.Type), "title": messageName(e.Type), "contentType": "application/json",
		"payload": map[string]any{
			"type": "object", "required": []string{"eventId", "runId", "type", "payload", "timestamp", "sequence"},
			"properties": map[string]any{"type": map[string]any{"const": string(e.Type)}, "payload": payload},
		},
	}
}

// messageName returns a type in upper camel case: run.batch_ingested becomes RunBatchIngested.
func messageName(t timeline.Type) string {
	name := ""
	for _, word := range strings.FieldsFunc(string(t), func(r rune) bool { return strings.ContainsRune("._-", r) }) {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

func ref(to string) map[string]any { return map[string]any{"$ref": to} }
