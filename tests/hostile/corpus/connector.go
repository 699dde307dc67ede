package corpus

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/sluicehost/sluice/abi"
)

// A Connector is a Builder with the calls of the contract as instructions. The
// functions it needs are imported on first use, so its body is written before
// any helper function.
type Connector struct{ *Builder }

// connector builds a case's module around one body.
func connector(locals string, body func(c *Connector) Code) func() []byte {
	return func() []byte {
		c := &Connector{NewBuilder()}
		return c.Main(locals, body(c)).Bytes()
	}
}

// Raw calls a core function with any pointer and length and leaves its i64.
func (c *Connector) Raw(name string, ptr, length uint32) Code {
	return Seq(U32(ptr), U32(length), Call(c.Import(abi.ModuleCore, name)))
}

// Send calls a core function with bytes and drops the result.
func (c *Connector) Send(name string, payload []byte) Code {
	s := c.Data(payload)
	return Seq(c.Raw(name, s.Ptr, s.Len), Drop)
}

// Start asks for START and leaves it pending.
func (c *Connector) Start() Code { return Seq(c.Raw("start", 0, 0), Drop) }

// Done reports success with a number of records.
func (c *Connector) Done(records int) Code { return c.Send("done", done(records)) }

func done(records int) []byte {
	return fmt.Appendf(nil, `{"status":"succeeded","records_emitted":%d}`, records)
}

// Session is START, an attack, and a DONE that succeeds.
func (c *Connector) Session(attack Code) Code { return Seq(c.Start(), attack, c.Done(0)) }

// Exit ends the process with a code.
func (c *Connector) Exit(code int32) Code {
	return Seq(I32(code), Call(c.WASI("proc_exit", "i>")))
}

// Addresses below firstData that WASI results go to.
const resultAt = 16

// Write writes bytes to a descriptor with one iovec and drops the errno.
func (c *Connector) Write(fd int32, content []byte) Code {
	s := c.Data(content)
	return Seq(c.WriteSpan(fd, s), Drop)
}

// WriteSpan writes what is in memory and leaves the errno.
func (c *Connector) WriteSpan(fd int32, s Span) Code {
	iovec := c.Words(s.Ptr, s.Len)
	return Seq(I32(fd), U32(iovec.Ptr), I32(1), I32(resultAt), Call(c.WASI("fd_write", "iiii>i")))
}

// Say writes one line to standard output.
func (c *Connector) Say(line string) Code { return c.Write(1, []byte(line+"\n")) }

// DoneLine is the DONE of a stdio connector.
func DoneLine(records int) string {
	return `{"type":"DONE","status":"succeeded","records_emitted":` + strconv.Itoa(records) + `}`
}

func words32(words ...uint32) []byte {
	var out []byte
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}
