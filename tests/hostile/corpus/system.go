package corpus

// systemCalls pass arguments to WASI that no library sends. Without the filesystem
// binding only the three standard descriptors are open.
func systemCalls() []Case {
	fails := func(name, rule, locals string, attack func(c *Connector) Code) Case {
		return Case{Name: "system-" + name, Group: GroupSystem, Rule: rule, Want: Succeeded,
			Wasm: connector(locals, func(c *Connector) Code {
				return Seq(attack(c), c.Say(DoneLine(0)))
			})}
	}
	// A bad pointer gives an errno of WASI, or ends the run as in a call of the ABI.
	pointer := func(name, locals string, attack func(c *Connector) Code) Case {
		c := fails(name, "pointer bounds", locals, attack).or(Violation)
		c.Subtype = "abi_fault"
		return c
	}
	return []Case{
		fails("no-preopens", "no preopened directories", "i", func(c *Connector) Code {
			prestat := c.WASI("fd_prestat_get", "ii>i")
			return Times(0, 1_024, Get(0), I32(2), Add, I32(resultAt), Call(prestat), Must())
		}),
		fails("paths-on-streams", "no preopened directories", "", func(c *Connector) Code {
			f := Files{c}
			var all Code
			for fd := range int32(12) {
				for _, p := range []string{"etc/passwd", "/etc/passwd", "..", "."} {
					all = Seq(all, f.open(I32(fd), p, 0, rightsRead), Must())
				}
			}
			return all
		}),
		fails("sockets", "WASI functions", "", func(c *Connector) Code {
			accept, shutdown := c.WASI("sock_accept", "iii>i"), c.WASI("sock_shutdown", "ii>i")
			receive, send := c.WASI("sock_recv", "iiiiii>i"), c.WASI("sock_send", "iiiii>i")
			one := c.Text("x")
			iovec := c.Words(one.Ptr, one.Len)
			var all Code
			for fd := range int32(8) {
				all = Seq(all, I32(fd), I32(0), I32(resultAt), Call(accept), Must(),
					I32(fd), U32(iovec.Ptr), I32(1), I32(0), I32(resultAt), I32(resultAt+8), Call(receive), Must(),
					I32(fd), U32(iovec.Ptr), I32(1), I32(0), I32(resultAt), Call(send), Must(),
					I32(fd), I32(3), Call(shutdown), Must())
			}
			return all
		}),
		fails("seek-streams", "WASI functions", "", func(c *Connector) Code {
			seek := c.WASI("fd_seek", "iIii>i")
			var all Code
			for fd := range int32(3) {
				all = Seq(all, I32(fd), I64(1<<40), I32(0), I32(resultAt), Call(seek), Must())
			}
			return all
		}),
		fails("unknown-clock", "WASI functions", "", func(c *Connector) Code {
			clock := c.WASI("clock_time_get", "iIi>i")
			return Seq(I32(99), I64(0), I32(resultAt), Call(clock), Must(), I32(-1), I64(0), I32(resultAt), Call(clock), Must())
		}),
		pointer("write-iovec-beyond", "", func(c *Connector) Code {
			return Seq(c.WriteSpan(1, Span{^uint32(0), 2}), Must(), c.WriteSpan(1, Span{0, ^uint32(0)}), Must())
		}),
		pointer("write-iovec-count", "", func(c *Connector) Code {
			write := c.WASI("fd_write", "iiii>i")
			return Seq(I32(2), I32(0), I32(-1), I32(resultAt), Call(write), Must(), I32(2), I32(-8), I32(1), I32(resultAt),
				Call(write), Must())
		}),
		pointer("write-result-beyond", "", func(c *Connector) Code {
			one := c.Text("x")
			iovec := c.Words(one.Ptr, one.Len)
			return Seq(I32(2), U32(iovec.Ptr), I32(1), I32(-1), Call(c.WASI("fd_write", "iiii>i")), Must())
		}),
		pointer("read-into-nothing", "", func(c *Connector) Code {
			iovec := c.Words(^uint32(0), 16)
			return Seq(I32(0), U32(iovec.Ptr), I32(1), I32(resultAt), Call(c.WASI("fd_read", "iiii>i")), Must())
		}),
		pointer("random-beyond", "", func(c *Connector) Code {
			random := c.WASI("random_get", "ii>i")
			return Seq(I32(0), I32(-1), Call(random), Must(), I32(-1), I32(1), Call(random), Must())
		}),
		pointer("arguments-beyond", "", func(c *Connector) Code {
			return Seq(I32(-4), I32(-4), Call(c.WASI("args_get", "ii>i")), Must(),
				I32(-4), I32(-4), Call(c.WASI("args_sizes_get", "ii>i")), Must(),
				I32(-4), I32(-4), Call(c.WASI("environ_sizes_get", "ii>i")), Must())
		}),
		pointer("poll-count", "", func(c *Connector) Code {
			poll := c.WASI("poll_oneoff", "iiii>i")
			return Seq(I32(0), I32(0), I32(-1), I32(resultAt), Call(poll), Must(), I32(-48), I32(0), I32(1),
				I32(resultAt), Call(poll), Must())
		}),
	}
}
