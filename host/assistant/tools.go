package assistant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/abi"
)

// A tool is something that an assistant can call.
type tool struct {
	name, title, text string
	in, out           string // properties of JSON Schemas
	need              string // required arguments, as a JSON array
	runs              bool   // only for assistants that may run connections
	effect            bool   // has side effects
	// do answers one call and returns the number of records or rows in the answer.
	do func(s *endpoint, ctx context.Context, r *mcp.CallToolRequest) (answer, int, error)
}

const (
	ofStream = `"connection":{"type":"string","description":"id of a connection"},"stream":{"type":"string"}`
	record   = `{"type":"object","properties":{"connection":{"type":"string"},"stream":{"type":"string"},"key":{"type":"string"},"changedAt":{"type":"string"},"deleted":{"type":"boolean"},"data":{"type":"object"},"snippet":{"type":"string"}},"required":["key"]}`
	records  = `"notice":{"type":"string"},"records":{"type":"array","items":` + record +
		`},"cursor":{"type":"string","description":"give it again for what follows; absent at the end"}`
	limit     = `"limit":{"type":"integer","minimum":1,"maximum":100}`
	anyObject = `{"type":"array","items":{"type":"object"}}`
)

// tools lists all tools.
var tools = []tool{
	{name: "data", title: "What data there is", do: (*endpoint).dataCall, in: ``, need: `[]`,
		text: "Lists the connections and streams that you may see, with tables for SQL, fields, counts, when each last changed, and how many details are missing.",
		out:  `"notice":{"type":"string"},"connections":` + anyObject},
	{name: "search", title: "Search records", do: (*endpoint).searchCall, need: `["words"]`,
		text: "Finds records in which all words occur, in any field that you may see, the best first. \"Words in a row\" stand in quotes, begin* is for beginnings, -word is for what must not be there.",
		in:   `"words":{"type":"string","minLength":1,"maxLength":500},` + ofStream + `,` + limit, out: records},
	{name: "list_records", title: "List records", do: (*endpoint).listCall, need: `["connection","stream"]`,
		text: "Lists the current records of a stream, what changed last first.",
		in:   ofStream + `,` + limit + `,"cursor":{"type":"string"}`, out: records},
	{name: "get_record", title: "Get one record", do: (*endpoint).getCall, need: `["connection","stream","key"]`,
		text: "Returns one record by its key, with texts of up to 64 KiB.",
		in:   ofStream + `,"key":{"type":"string"}`, out: `"notice":{"type":"string"},"record":` + record},
	{name: "changes_since", title: "What changed", do: (*endpoint).changesCall, need: `["connection","stream"]`,
		text: "Lists what changed in a stream since a cursor of an earlier answer, oldest first; without one everything. Deleted records have no data.",
		in:   ofStream + `,` + limit + `,"cursor":{"type":"string"}`, out: records + `,"more":{"type":"boolean"}`},
	{name: "query", title: "Ask with SQL", do: (*endpoint).queryCall, need: `["sql"]`,
		text: "Runs one SELECT in the dialect of SQLite over a copy of what you may see. Tables are named connection.stream, as the tool data lists them.",
		in:   `"sql":{"type":"string","minLength":1},"rows":{"type":"integer","minimum":1,"maximum":1000,"description":"100 unless given"}`,
		out:  `"notice":{"type":"string"},"columns":{"type":"array","items":{"type":"string"}},"rows":{"type":"array","items":{"type":"array"}},"truncated":{"type":"boolean"}`},
	{name: "runs", title: "Runs of connections", do: (*endpoint).runsCall, need: `[]`,
		text: "Lists the newest runs that collected the data: when, and how they ended.",
		in:   `"connection":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":100}`,
		out:  `"runs":` + anyObject},
	{name: "run_connection", title: "Collect now", do: (*endpoint).runCall, need: `["connection"]`, runs: true,
		effect: true, text: "Starts a run of a connection, as its owner set it up. The tool runs shows how it ends.",
		in: `"connection":{"type":"string"}`, out: `"run":{"type":"object"}`},
	{name: "waiting", title: "What waits for the owner", do: (*endpoint).waitingCall, need: `[]`, runs: true,
		text: "Lists what waits for the owner, with links to pages where the owner decides. Nothing can be answered from here.",
		in:   ``, out: `"waiting":` + anyObject},
}

func (t *tool) describe() *mcp.Tool {
	no := false
	return &mcp.Tool{Name: t.name, Title: t.title, Description: t.text,
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + t.in +
			`},"required":` + t.need + `}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{` + t.out + `}}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.effect, DestructiveHint: &no, OpenWorldHint: &t.effect,
			IdempotentHint: !t.effect},
	}
}

// lacks returns an error if one of the required arguments is missing.
func (t *tool) lacks(arguments json.RawMessage) error {
	var need []string
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(t.need), &need); err != nil {
		return err
	}
	if json.Unmarshal(arguments, &given) != nil && len(arguments) > 0 {
		return refuse("arguments", "The arguments of "+t.name+" have to be one JSON object.")
	}
	for _, name := range need {
		if v := given[name]; len(v) == 0 || string(v) == "null" {
			return refuse("arguments", name+" is missing: "+t.name+" wants "+strings.Join(need, ", ")+
				". The tool data lists what there is.")
		}
	}
	return nil
}

// read decodes the arguments of a call and refuses unknown members.
func read(r *mcp.CallToolRequest, into any) error {
	if len(bytes.TrimSpace(r.Params.Arguments)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(r.Params.Arguments))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("there is something behind them")
	}
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed) && typed.Field != "":
		want := map[reflect.Kind]string{reflect.String: "a string", reflect.Int: "a whole number"}[typed.Type.Kind()]
		return refuse("arguments", strings.ToLower(typed.Field)+": want "+want+", not "+typed.Value+".")
	}
	text := strings.TrimPrefix(abi.Cut(abi.Clean(err.Error()), 200), "json: ")
	return refuse("arguments", "The arguments are not as "+r.Params.Name+" wants them: "+text+".")
}
