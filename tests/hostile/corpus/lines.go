package corpus

import "strings"

// lines attack the stdio profile: one JSON object a line on fd 1.
func lines() []Case {
	var cases []Case
	for _, t := range hostileTexts() {
		if strings.TrimSpace(t.text) == "" || strings.ContainsAny(t.text, "\n") {
			continue // a blank line is no message
		}
		text := t.text
		if rest, ok := strings.CutPrefix(text, "{"); ok {
			text = `{"type":"PROGRESS",` + rest
		}
		cases = append(cases, stdio("json-"+t.name, t.subtype, func(c *Connector) Code { return c.Say(text) }))
	}
	cases = append(cases,
		stdio("no-type", "unknown_message_type", func(c *Connector) Code { return c.Say(`{"message":"x"}`) }),
		stdio("type-folded", "unknown_message_type",
			func(c *Connector) Code { return c.Say(`{"Type":"PROGRESS","message":"x"}`) }),
		stdio("type-number", "unknown_message_type", func(c *Connector) Code { return c.Say(`{"type":1}`) }),
		stdio("type-start", "unknown_message_type", func(c *Connector) Code { return c.Say(`{"type":"START"}`) }),
		stdio("not-json", "frame_invalid_json", func(c *Connector) Code { return c.Say(`hello, world`) }),
		stdio("nul-line", "frame_invalid_json", func(c *Connector) Code { return c.Say("\x00\x00\x00") }),
		stdio("cr-only", "frame_invalid_json", func(c *Connector) Code {
			return c.Say(`{"type":"PROGRESS","message":"x"}` + "\r" + `{"type":"PROGRESS","message":"y"}`)
		}),
		stdio("terminal-escape", "frame_invalid_json", func(c *Connector) Code { return c.Say("\x1b]0;owned\x07") }),
		stdio("event-injection", "frame_invalid_json",
			func(c *Connector) Code { return c.Say("event: run.completed\ndata: {}\n") }),
		stdio("second-line-bad", "frame_invalid_json", func(c *Connector) Code {
			return c.Say(`{"type":"PROGRESS","message":"x"}` + "\n{")
		}),
		stdio("line-too-long", "frame_too_large", func(c *Connector) Code {
			return c.Say(`{"type":"PROGRESS","message":"` + strings.Repeat("a", 1<<20+64<<10) + `"}`)
		}),
		stdio("no-line-feed", "frame_too_large", func(c *Connector) Code {
			flood := c.Text(strings.Repeat("a", 64<<10))
			return Forever(c.WriteSpan(1, flood), Drop)
		}),
		stdio("no-line-feed-bytewise", "frame_too_large", func(c *Connector) Code {
			one := c.Text("a")
			return Forever(c.WriteSpan(1, one), Drop)
		}),
		stdio("after-done", "message_after_done", func(c *Connector) Code {
			return Seq(c.Say(DoneLine(0)), c.Say(`{"type":"PROGRESS","message":"x"}`))
		}),
		stdio("done-twice-in-one-write", "message_after_done", func(c *Connector) Code {
			return c.Write(1, []byte(DoneLine(0)+"\n"+DoneLine(0)+"\n"))
		}),
		stdio("question", "interaction_without_binding", func(c *Connector) Code {
			return c.Say(`{"type":"INTERACTION","request_id":"q","kind":"credentials","message":"Your password, please"}`)
		}),
		stdio("record-of-unknown-stream", "record_for_undeclared_stream", func(c *Connector) Code {
			return c.Say(`{"type":"RECORD","stream":"others","key":"a","data":{"id":"a"},"emitted_at":"2026-01-01T00:00:00Z"}`)
		}),
		stdio("record-key-number", "record_invalid_key", func(c *Connector) Code {
			return c.Say(`{"type":"RECORD","stream":"items","key":1,"data":{"id":"1"},"emitted_at":"2026-01-01T00:00:00Z"}`)
		}),
	)
	harmless := []Case{
		{Name: "stdio-blank-lines", Want: Succeeded, Wasm: connector("i", func(c *Connector) Code {
			blank := c.Text(strings.Repeat("\n", 4_096))
			return Seq(Times(0, 100, c.WriteSpan(1, blank), Drop), c.Say(DoneLine(0)))
		})},
		{Name: "stdio-crlf", Want: Succeeded,
			Wasm: connector("", func(c *Connector) Code { return c.Say(DoneLine(0) + "\r") })},
		{Name: "stdio-last-line-open", Want: Succeeded, Wasm: connector("", func(c *Connector) Code {
			return c.Write(1, []byte(DoneLine(0)))
		})},
		{Name: "stdio-one-byte-writes", Want: Succeeded, Wasm: connector("", func(c *Connector) Code {
			var all Code
			for _, b := range []byte(DoneLine(0) + "\n") {
				all = Seq(all, c.Write(1, []byte{b}))
			}
			return all
		})},
		{Name: "stdio-silent", Want: NoDone, Wasm: connector("", func(*Connector) Code { return nil })},
		{Name: "stdio-closes-input", Want: StdinClosed, Wasm: connector("", func(c *Connector) Code {
			return Seq(I32(0), Call(c.WASI("fd_close", "i>i")), Drop)
		})},
		{Name: "stdio-closes-output", Want: NoDone, Or: []string{Succeeded}, Wasm: connector("", func(c *Connector) Code {
			return Seq(I32(1), Call(c.WASI("fd_close", "i>i")), Drop, c.Say(DoneLine(0)))
		})},
		{Name: "stdio-renumbers-output", Want: NoDone, Or: []string{Succeeded}, Wasm: connector("", func(c *Connector) Code {
			return Seq(I32(1), I32(0), Call(c.WASI("fd_renumber", "ii>i")), Drop, c.Say(DoneLine(0)))
		})},
	}
	for _, c := range harmless {
		c.Group, c.Rule = GroupStdio, "stdio lines"
		cases = append(cases, c)
	}
	return cases
}

// stdio is a case that says something wrong and then DONE.
func stdio(name, subtype string, attack func(c *Connector) Code) Case {
	return Case{Name: "stdio-" + name, Group: GroupStdio, Rule: "stdio lines", Want: Violation, Subtype: subtype,
		Wasm: connector("", func(c *Connector) Code { return Seq(attack(c), c.Say(DoneLine(0))) })}
}
