package stream

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"time"
)

// An Out accepts the frames of a stream. Its methods return an error once the client is gone; the
// Source has to return it.
type Out struct {
	s       *Stream
	ctx     context.Context
	w       *bufio.Writer
	armed   time.Time // when the write deadline was last extended
	last    time.Time // time of the newest frame
	dirty   bool
	closing bool
}

// Closing reports whether this is the last call of the Source, which must send what it still holds.
func (o *Out) Closing() bool { return o.closing }

// Event writes one frame: id and event unless they are "", and a data line for each line of data.
// Line breaks in id and event are dropped.
func (o *Out) Event(id, event string, data []byte) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.field("id: ", id)
	o.field("event: ", event)
	for more := true; more; {
		var line []byte
		line, data, more = cutLine(data)
		o.w.WriteString("data: ")
		o.w.Write(line)
		o.w.WriteByte('\n')
	}
	return o.end()
}

// Comment writes a comment line, which clients ignore.
func (o *Out) Comment(text string) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.w.WriteByte(':')
	writeField(o.w, text)
	return o.end()
}

// Flush sends what was written. A Source that writes more than a page at once has to call it from
// time to time; the rest is flushed when it returns.
func (o *Out) Flush() error {
	if !o.dirty {
		return nil
	}
	o.dirty = false
	o.s.extend()
	return o.w.Flush()
}

// begin precedes every frame. It extends the deadline before the first byte, since a full buffer is
// written in between.
func (o *Out) begin() error {
	if err := o.ctx.Err(); err != nil {
		return io.ErrClosedPipe
	}
	now := time.Now()
	if o.last = now; now.Sub(o.armed) > time.Second || o.armed.IsZero() {
		o.armed = now
		o.s.extend()
	}
	return nil
}

func (o *Out) end() error {
	o.dirty = true
	return o.w.WriteByte('\n')
}

func (o *Out) field(name, value string) {
	if value == "" {
		return
	}
	o.w.WriteString(name)
	writeField(o.w, value)
}

func writeField(w *bufio.Writer, value string) {
	for i := 0; i < len(value); i++ {
		if c := value[i]; c != '\n' && c != '\r' && c != 0 {
			w.WriteByte(c)
		}
	}
	w.WriteByte('\n')
}

// cutLine splits data at the first line break of any kind that clients recognise.
func cutLine(data []byte) (line, rest []byte, more bool) {
	i := bytes.IndexAny(data, "\r\n")
	if i < 0 {
		return data, nil, false
	}
	if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
		return data[:i], data[i+2:], true
	}
	return data[:i], data[i+1:], true
}
