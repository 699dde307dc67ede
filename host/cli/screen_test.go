package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

func liveScreen(out *strings.Builder, width int) *screen {
	return &screen{out: out, live: true, width: func() int { return width }}
}

// A block takes its own lines back and nothing else, and never wraps.
func TestScreenRedraws(t *testing.T) {
	var out strings.Builder
	s := liveScreen(&out, 10)
	s.draw([]string{"one", "a line that is too long"})
	s.draw([]string{"two"})
	s.line("stays")
	s.draw([]string{"three"})
	release := s.hold()
	s.draw([]string{"unseen"})
	release()
	s.draw([]string{"four"})
	s.clear()
	want := "one\na line t…\n" +
		"\r\x1b[2A\x1b[Jtwo\n" +
		"\r\x1b[1A\x1b[Jstays\n" +
		"three\n" +
		"\r\x1b[1A\x1b[J" +
		"four\n" +
		"\r\x1b[1A\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Without a terminal there is no block and no escape sequence.
func TestScreenInPipe(t *testing.T) {
	var out strings.Builder
	s := newScreen(&out)
	s.draw([]string{"block"})
	s.line(s.paint(red, "line"))
	s.clear()
	if got := out.String(); got != "line\n" {
		t.Errorf("a pipe got %q", got)
	}
}

func event(typ, stream string, data map[string]any) store.Event {
	b, _ := json.Marshal(data)
	return store.Event{Type: typ, Stream: store.Stream(stream), Data: b}
}

// The block shows streams with counts, phase, mode, the latest message, and
// what the owner is asked to do; text of the connector is cleaned.
func TestProgressBlock(t *testing.T) {
	var out strings.Builder
	p := newProgress(newScreen(&out), &abi.Manifest{DisplayName: "Mail\x1b[31m box"})
	for _, e := range []store.Event{
		event("run.started", "",
			map[string]any{"scope_streams": []string{"messages", "tags"}, "collection_mode": "incremental",
				"isolation": map[string]any{"level": "full"}}),
		event("run.batch_ingested", "messages", map[string]any{"records_accepted": 1500, "records_permanently_rejected": 2}),
		event("run.progress_reported", "messages", map[string]any{"message": "page\u202e 3", "count": 30, "total": 40}),
		event("run.state_staged", "messages", map[string]any{}),
		event("run.stream_skipped", "tags", map[string]any{"reason": "not_available", "message": "gone"}),
		event("run.assistance_requested", "", map[string]any{"message": "Approve in the app"}),
	} {
		p.event(e)
	}
	want := []string{
		"Mail[31m box  collecting  2m05s  incremental",
		"  messages      1,500   75%  checkpoint",
		"  tags              0  skipped: not_available",
		"  2 records rejected",
		"  page 3",
		"  ! Approve in the app",
	}
	if diff := cmp.Diff(want, p.block(p.began.Add(125*time.Second))); diff != "" {
		t.Error(diff)
	}
	p.close()
	wantLines := "run  started: incremental, isolation full\nmessages: page 3\nskipped tags: not_available — gone\nthe connector asks for help: Approve in the app\n"
	if diff := cmp.Diff(wantLines, out.String()); diff != "" {
		t.Error(diff)
	}
}

// However many streams there are, the block fits.
func TestProgressBlockIsBounded(t *testing.T) {
	var out strings.Builder
	p := newProgress(newScreen(&out), &abi.Manifest{})
	defer p.close()
	var names []string
	for range 200 {
		names = append(names, "s"+strings.Repeat("x", len(names)))
	}
	p.event(event("run.started", "", map[string]any{"scope_streams": names}))
	if n := len(p.block(time.Now())); n != maxBlockStreams+2 {
		t.Errorf("the block has %d lines", n)
	}
}
