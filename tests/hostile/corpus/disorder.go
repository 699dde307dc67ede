package corpus

// disorder makes valid calls at the wrong time, and ends that do not fit.
func disorder() []Case {
	wrong := func(name, subtype string, body func(c *Connector) Code) Case {
		return Case{Name: "order-" + name, Group: GroupOrder, Rule: "call order", Want: Violation, Subtype: subtype,
			Wasm: connector("", body)}
	}
	ends := func(name, reason string, body func(c *Connector) Code) Case {
		return Case{Name: "order-" + name, Group: GroupOrder, Rule: "exit and traps", Want: reason, Wasm: connector("", body)}
	}
	progress := []byte(`{"message":"x"}`)
	state := []byte(`{"stream":"items","cursor":{"n":1}}`)
	failed := []byte(`{"status":"failed","records_emitted":0,"error":{"message":"no"}}`)
	return []Case{
		wrong("start-twice", "abi_fault", func(c *Connector) Code { return Seq(c.Start(), c.Start()) }),
		wrong("checkpoint-before-start", "abi_fault", func(c *Connector) Code { return c.Send("checkpoint", state) }),
		wrong("emit-before-start", "abi_fault",
			func(c *Connector) Code { return c.Send("emit", frame(upsert("a", `{"id":"a"}`))) }),
		wrong("done-before-start", "abi_fault", func(c *Connector) Code { return c.Done(0) }),
		wrong("done-twice", "message_after_done", func(c *Connector) Code { return Seq(c.Session(nil), c.Done(0)) }),
		wrong("emit-after-done", "message_after_done", func(c *Connector) Code {
			return Seq(c.Session(nil), c.Send("emit", frame(upsert("a", `{"id":"a"}`))), c.Send("progress", progress))
		}),
		wrong("progress-after-done", "message_after_done",
			func(c *Connector) Code { return Seq(c.Session(nil), c.Send("progress", progress)) }),
		wrong("garbage-after-done", "message_after_done",
			func(c *Connector) Code { return Seq(c.Session(nil), c.Send("progress", []byte("{"))) }),
		wrong("start-after-done", "message_after_done", func(c *Connector) Code { return Seq(c.Session(nil), c.Start()) }).
			subtypes("abi_fault"),
		wrong("ignores-violation", "progress_invalid_message", func(c *Connector) Code {
			return Seq(c.Start(), c.Send("progress", []byte(`{"message":""}`)), c.Done(0), Forever(c.Send("progress", progress)))
		}),
		wrong("ignores-violation-in-frame", "frame_malformed", func(c *Connector) Code {
			return Seq(c.Start(), c.Send("emit", []byte("XX")), Forever(c.Send("progress", progress)))
		}),
		wrong("exit-3-after-success", "exit_code_mismatch",
			func(c *Connector) Code { return Seq(c.Session(nil), c.Exit(3)) }),
		wrong("trap-after-success", "exit_code_mismatch",
			func(c *Connector) Code { return Seq(c.Session(nil), Unreachable) }),
		wrong("exit-0-after-failure", "exit_code_mismatch",
			func(c *Connector) Code { return Seq(c.Start(), c.Send("done", failed)) }),
		wrong("loop-after-done", "exit_timeout_after_done",
			func(c *Connector) Code { return Seq(c.Session(nil), Forever()) }),
		wrong("done-counts-wrong", "done_records_emitted_mismatch",
			func(c *Connector) Code { return Seq(c.Start(), c.Done(7)) }),
		wrong("done-counts-negative", "done_invalid_records_emitted",
			func(c *Connector) Code { return Seq(c.Start(), c.Done(-1)) }),
		wrong("done-status-unknown", "done_invalid_status", func(c *Connector) Code {
			return Seq(c.Start(), c.Send("done", []byte(`{"status":"SUCCEEDED","records_emitted":0}`)))
		}),
		wrong("question-without-binding", "interaction_without_binding", func(c *Connector) Code {
			return Seq(c.Start(), c.Send("interact",
				[]byte(`{"request_id":"q","kind":"credentials","message":"Your password, please"}`)))
		}),
		wrong("state-of-unknown-stream", "state_for_undeclared_stream", func(c *Connector) Code {
			return Seq(c.Start(), c.Send("checkpoint", []byte(`{"stream":"others","cursor":{}}`)))
		}),
		wrong("status-of-unknown-assistance", "assistance_status_unknown_id", func(c *Connector) Code {
			return Seq(c.Start(), c.Send("assist_status", []byte(`{"assistance_request_id":"asst_0","status":"resolved"}`)))
		}),

		ends("exit-0-without-done", NoDone, func(c *Connector) Code { return c.Exit(0) }),
		ends("exit-1-without-done", NoDone, func(c *Connector) Code { return Seq(c.Start(), c.Exit(1)) }),
		ends("exit-negative", NoDone, func(c *Connector) Code { return Seq(c.Start(), c.Exit(-1)) }),
		// 0xefffffff
		ends("exit-engine-code", NoDone, func(c *Connector) Code { return Seq(c.Start(), c.Exit(-0x10000001)) }),
		ends("returns-without-done", NoDone, func(c *Connector) Code { return c.Start() }),
		ends("fails-and-traps", Failed,
			func(c *Connector) Code { return Seq(c.Start(), c.Send("done", failed), Unreachable) }),
	}
}

// subtypes adds violations that are as good.
func (c Case) subtypes(also ...string) Case {
	c.OrSubtype = append(c.OrSubtype, also...)
	return c
}
