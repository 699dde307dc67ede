package corpus

import "time"

// short is enough for a run to start and for its budget to matter.
const short = time.Second

// loops never end by themselves: the host ends them at the budget, without the
// guest's help.
func loops() []Case {
	endless := func(name string, wasm func() []byte) Case {
		return Case{Name: "loop-" + name, Group: GroupLoop, Rule: "end of a budget", Wasm: wasm, Want: TimedOut,
			Budgets: Budgets{Compute: short, Active: 4 * short, Stall: 2 * short}}
	}
	calling := func(name, function, signature string, arguments Code) Case {
		return endless(name, connector("", func(c *Connector) Code {
			f := c.WASI(function, signature)
			return Forever(arguments, Call(f), Drop)
		}))
	}
	cases := []Case{
		endless("empty", connector("", func(*Connector) Code { return Forever() })),
		endless("arithmetic", connector("I", func(*Connector) Code {
			return Forever(Get(0), I64(6364136223846793005), Op(0x7e), I64(1), Op(0x7c), Set(0))
		})),
		endless("after-start", connector("", func(c *Connector) Code { return Seq(c.Start(), Forever()) })),
		endless("straight-code", connector("", func(c *Connector) Code {
			fill := Seq(I32(0), I32(7), I32(1<<20), MemoryFill)
			c.MemoryMin = 16
			return Forever(repeat(1_000, fill)) // few back edges, which is where engines look
		})),
		endless("memory-fill", connector("", func(c *Connector) Code {
			c.MemoryMin = 1_024
			return Forever(I32(0), I32(1), I32(1_024*65_536), MemoryFill)
		})),
		endless("memory-copy", connector("", func(c *Connector) Code {
			c.MemoryMin = 1_024
			return Forever(I32(1), I32(0), I32(1_024*65_536-1), MemoryCopy)
		})),
		calling("clock", "clock_time_get", "iIi>i", Seq(I32(1), I64(0), I32(resultAt))),
		calling("yield", "sched_yield", ">i", nil),
		calling("write-nothing", "fd_write", "iiii>i", Seq(I32(1), I32(0), I32(0), I32(resultAt))),
		calling("write-empty-iovecs", "fd_write", "iiii>i", Seq(I32(2), I32(firstData), I32(1_024), I32(resultAt))),
		calling("read-nothing", "fd_read", "iiii>i", Seq(I32(0), I32(0), I32(0), I32(resultAt))),
		calling("random", "random_get", "ii>i", Seq(I32(0), I32(131_072))),
		calling("bad-descriptor", "fd_close", "i>i", I32(-1)),
		calling("arguments", "args_get", "ii>i", Seq(I32(512), I32(1_024))),
		calling("poll-of-nothing", "poll_oneoff", "iiii>i", Seq(I32(firstData), I32(1_024), I32(0), I32(resultAt))),
		endless("log-calls", connector("", func(c *Connector) Code {
			s := c.Text(`{"level":"info","message":"x"}`)
			return Seq(c.Start(), Forever(c.Raw("log", s.Ptr, s.Len), Drop))
		})),
		endless("reply", connector("", func(c *Connector) Code {
			reply := c.Import("sluice_v1", "reply")
			return Seq(c.Start(), Forever(I32(1_024), I32(0), Call(reply), Drop))
		})),
		sleeping("sleep-292-years", ^uint64(0)>>1),
		sleeping("sleep-forever", ^uint64(0)),
		sleeping("sleep-microsecond", 1_000),
	}
	start := endless("in-start-section", func() []byte {
		b := NewBuilder()
		b.AtInstantiation(b.Func(">", "", Forever()))
		return b.Main("", nil).Bytes()
	})
	start.Or = []string{LaunchFail} // before or after the guest counts as started
	return append(cases, start)
}

// sleeping polls one relative clock again and again.
func sleeping(name string, nanoseconds uint64) Case {
	return Case{
		Name: "loop-" + name, Group: GroupLoop, Rule: "call deadlines", Want: TimedOut,
		Budgets: Budgets{Compute: 2 * short, Active: 2 * short, Stall: short},
		Wasm: connector("", func(c *Connector) Code {
			// userdata, tag 0 (clock), id 1 (monotonic), timeout, precision, flags 0
			subscription := c.Words(0, 0, 0, 0, 1, 0, uint32(nanoseconds), uint32(nanoseconds>>32), 0, 0, 0, 0)
			events := c.Data(make([]byte, 64))
			poll := c.WASI("poll_oneoff", "iiii>i")
			return Forever(U32(subscription.Ptr), U32(events.Ptr), I32(1), I32(resultAt), Call(poll), Drop)
		}),
	}
}
