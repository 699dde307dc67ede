package export_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/store"
)

// turning is a source of as many pages of one record, which counts how many are being read.
type turning struct {
	pages, fails int
	reading      int // not guarded: one page is read at a time
}

var errRead = errors.New("read")

func (s *turning) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	s.reading++
	defer func() { s.reading-- }()
	if s.reading > 1 {
		panic("two pages at once")
	}
	if int(q.After) == s.fails {
		return store.RecordPage{}, errRead
	}
	next := q.After + 1
	return store.RecordPage{Records: []store.Record{{Version: next}}, After: next, More: int(next) < s.pages}, ctx.Err()
}

// Each hands on every record once and in order, and whoever ends it, nothing is read afterwards.
func TestEach(t *testing.T) {
	errDone, ctx := errors.New("done"), t.Context()
	ended, end := context.WithCancel(ctx)
	defer end()
	for name, tt := range map[string]struct {
		ctx  context.Context
		src  turning
		at   uint64 // do gives errDone, or ends the context, at this record
		end  bool
		seen uint64
		want error
	}{
		"all":       {ctx: ctx, src: turning{pages: 50, fails: -1}, seen: 50},
		"do fails":  {ctx: ctx, src: turning{pages: 50, fails: -1}, at: 20, seen: 20, want: errDone},
		"read":      {ctx: ctx, src: turning{pages: 50, fails: 30}, seen: 30, want: errRead},
		"cancelled": {ctx: ended, src: turning{pages: 50, fails: -1}, at: 10, end: true, seen: 10, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			var seen uint64
			err := export.Selection{Streams: []export.From{{Stream: "s"}}}.Each(tt.ctx, &tt.src, func(r store.Record) error {
				if seen++; r.Version != seen {
					t.Fatalf("record %d came as number %d", r.Version, seen)
				}
				switch {
				case seen == tt.at && tt.end:
					end()
				case seen == tt.at:
					return errDone
				}
				return nil
			})
			// Of a context that is over, one page more may be on its way.
			if !errors.Is(err, tt.want) || seen != tt.seen && !(tt.end && seen == tt.seen+1) || tt.src.reading != 0 {
				t.Errorf("%v after %d records, %d pages being read; want %v after %d", err, seen, tt.src.reading, tt.want, tt.seen)
			}
		})
	}
}
