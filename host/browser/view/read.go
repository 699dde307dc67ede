package view

import "time"

// typePiece begins a binary message with a piece of a file.
const typePiece = 0x02

// read takes messages until the connection ends. One that says too much is not
// read faster than it may speak; nothing of it is lost.
func (w *viewer) read() {
	window, count := time.Now(), 0
	for w.ctx.Err() == nil {
		binary, raw, err := w.conn.Read()
		if err != nil {
			return
		}
		if len(raw) > MaxMessage {
			w.close(CloseTooBig, "")
			return
		}
		if now := time.Now(); now.Sub(window) >= time.Second {
			window, count = now, 0
		}
		if count++; count > perSecond {
			w.pause(time.Second - time.Since(window))
		}
		if !w.heard(binary, raw) {
			return
		}
	}
}

func (w *viewer) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.ctx.Done():
	case <-t.C:
	}
}

// heard takes one message; false ends the connection.
func (w *viewer) heard(binary bool, raw []byte) bool {
	if binary {
		w.piece(raw)
		return true
	}
	m, ok := parse(raw)
	switch {
	case ok && m.kind == "ack":
		w.ack(m.seq)
	case ok && m.kind == "bye":
		w.mu.Lock()
		w.bye = true
		w.mu.Unlock()
		return false
	case w.session.mode != ModeControl:
		w.refuse("not_controlling")
	case !ok:
		w.refuse("invalid_input")
	case m.kind == "take":
		if !w.run.take(w.session) {
			w.refuse("not_controlling")
		}
	case !w.run.holds(w.session):
		w.refuse("not_controlling")
	case m.kind == "release":
		w.run.endLease(w.session)
	case m.kind == "file_choose":
		w.announce(m)
	case !w.inbox.put(m):
		w.refuse("page_busy")
	}
	return true
}

// refuse answers a message that was ignored (B220, B225).
func (w *viewer) refuse(code string) { w.send(outgoing{"type": "error", "code": code}) }
