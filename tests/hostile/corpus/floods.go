package corpus

import (
	"fmt"
	"strings"
)

// floods send too much of what is allowed. The host coalesces, counts, slows
// down or ends the run; it never grows.
func floods() []Case {
	flood := func(name, want, subtype string, locals string, body func(c *Connector) Code) Case {
		return Case{Name: "flood-" + name, Group: GroupFlood, Rule: "output limits", Want: want, Subtype: subtype,
			Wasm: connector(locals, body)}
	}
	calls := func(name string, n int32, function, payload string) Case {
		return flood(name, Succeeded, "", "i", func(c *Connector) Code {
			s := c.Text(payload)
			return c.Session(Times(0, n, c.Raw(function, s.Ptr, s.Len), Drop))
		})
	}
	writes := func(name string, n int32, fd int32, content string) Case {
		return flood(name, Succeeded, "", "i", func(c *Connector) Code {
			s := c.Text(content)
			return Seq(Times(0, n, c.WriteSpan(fd, s), Drop), c.Say(DoneLine(0)))
		})
	}
	tooMany := func(name string, n int32, function, payload, subtype string) Case {
		c := calls(name, n, function, payload)
		c.Want, c.Subtype = Violation, subtype
		return c
	}
	progressLine := `{"type":"PROGRESS","message":"still here"}` + "\n"
	return []Case{
		writes("progress-1m-lines", 1_000, 1, strings.Repeat(progressLine, 1_000)),
		calls("progress-100k-calls", 100_000, "progress", `{"message":"still here","count":1}`),
		calls("log-100k-calls", 100_000, "log", `{"level":"error","message":"`+strings.Repeat("x", 1_000)+`"}`),
		calls("log-escapes", 1_000, "log", `{"level":"info","message":"\u001b[2J\u202eowned\r\n\r\nHTTP/1.1 200 OK"}`),
		calls("live-text-20k", 20_000, "message", `{"chunk":"`+strings.Repeat("y", 1_000)+`","is_last":false}`),
		writes("stderr-64m", 1_000, 2, strings.Repeat("z", 64<<10)),
		calls("emit-empty-frames", 50_000, "emit", string(frame())),
		calls("checkpoints-2k", 2_000, "checkpoint", `{"stream":"items","cursor":{"n":1}}`),
		calls("cursor-250k", 20, "checkpoint", `{"stream":"items","cursor":{"n":"`+strings.Repeat("c", 250<<10)+`"}}`),
		tooMany("cursor-257k", 1, "checkpoint", `{"stream":"items","cursor":{"n":"`+strings.Repeat("c", 257<<10)+`"}}`,
			"state_cursor_too_large"),
		tooMany("skips", 2_001, "skip", `{"stream":"items","reason":"x"}`, "message_limit_exceeded"),
		tooMany("gaps", 50_001, "gap", `{"stream":"items","record_key":"a"}`, "message_limit_exceeded"),
		flood("assistances", Violation, "assistance_limit_exceeded", "i", func(c *Connector) Code {
			s := c.Text(`{"progress_posture":"running","owner_action":"none","response_obligation":"none","message":"look here"}`)
			return c.Session(Times(0, 17, c.Raw("assist", s.Ptr, s.Len), Drop))
		}),
		flood("same-record-100k", Succeeded, "", "i", func(c *Connector) Code {
			many := make([]record, 1_000)
			for i := range many {
				many[i] = upsert("same", `{"id":"same"}`)
			}
			s := c.Data(frame(many...))
			return Seq(c.Start(), Times(0, 100, c.Raw("emit", s.Ptr, s.Len), Drop), c.Done(100_000))
		}),
		flood("rejected-records", Succeeded, "", "i", func(c *Connector) Code {
			many := make([]record, 1_000)
			for i := range many {
				many[i] = upsert(fmt.Sprint(i), `{"id":"another"}`) // the key disagrees
			}
			s := c.Data(frame(many...))
			return Seq(c.Start(), Times(0, 20, c.Raw("emit", s.Ptr, s.Len), Drop), c.Done(20_000))
		}),
		flood("largest-frames", Succeeded, "", "i", func(c *Connector) Code {
			data := `{"id":"a","x":"` + strings.Repeat("a", 1<<20-64) + `"}`
			s := c.Data(frame(upsert("a", data)))
			return Seq(c.Start(), Times(0, 64, c.Raw("emit", s.Ptr, s.Len), Drop), c.Done(64))
		}),
		flood("fills-credit-and-traps", Trapped, "", "i", func(c *Connector) Code {
			s := c.Data(frame(upsert("a", `{"id":"a"}`)))
			return Seq(c.Start(), Times(0, 5_000, c.Raw("emit", s.Ptr, s.Len), Drop), Unreachable)
		}),
	}
}
