package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
)

// A CopyStage is a stage of a copy.
type CopyStage string

// The stages of a copy, in order.
const (
	CopySurvey  CopyStage = "survey"  // reads what the source has
	CopyItems   CopyStage = "copy"    // items are copied
	CopyVerify  CopyStage = "verify"  // the target checks its counters
	CopyCompare CopyStage = "compare" // compares item by item
)

// CopyTotals count what is copied.
type CopyTotals struct {
	Records uint64 `json:"records"` // tombstones included
	Events  uint64 `json:"events"`
	Files   uint64 `json:"files"`
	Bytes   uint64 `json:"bytes"` // of items
}

// CopyProgress is the progress of a copy.
type CopyProgress struct {
	Stage CopyStage
	Kind  ItemKind // being copied or compared
	// Of is the total, without Bytes; Done is what this call has done in the stage.
	Of, Done CopyTotals
	Resumed  bool
}

// CopyStore copies everything in from to to, verifies the copy, and returns its totals. It
// does not change from, which nobody may write to meanwhile: ErrSourceChanged. If it is
// interrupted, a call with the same stores resumes it, or returns *OtherCopyError if from
// has changed since. If to holds the same already, nothing is done. Other errors are those
// of Imager.Fill; a *DamageError names damage in from, or a difference. tell is called from
// time to time.
func CopyStore(ctx context.Context, from, to interface {
	Store
	Imager
}, tell func(CopyProgress)) (CopyTotals, error) {
	c := copying{ctx: ctx, tell: tell, p: CopyProgress{Stage: CopySurvey}}
	tell(c.p)
	if err := from.Verify(ctx); err != nil {
		return CopyTotals{}, fmt.Errorf("verify the source: %w", err)
	}
	image, err := from.Image(ctx)
	if err != nil {
		return CopyTotals{}, err
	}
	defer image.Close()
	source, err := c.survey(image)
	if err != nil {
		return CopyTotals{}, err
	}
	f, at, err := to.Fill(ctx, source)
	if errors.Is(err, ErrNotEmpty) {
		if now, err := c.sourceOf(to); err != nil || now != source {
			return CopyTotals{}, errors.Join(err, ErrNotEmpty)
		}
		return c.verify(from, to, image, source)
	}
	if err != nil {
		return CopyTotals{}, err
	}
	defer f.Close()
	if err := c.items(image, f, at); err != nil {
		return CopyTotals{}, err
	}
	done, err := c.verify(from, to, image, source)
	if err != nil {
		return CopyTotals{}, err
	}
	return done, f.Finish(ctx)
}

// verify checks that the content of to is that of image, and that of from still source.
func (c *copying) verify(from Imager, to interface {
	Store
	Imager
}, image Image, source string) (done CopyTotals, err error) {
	c.stage(CopyVerify)
	if err := to.Verify(c.ctx); err != nil {
		return done, fmt.Errorf("verify the target: %w", err)
	}
	c.stage(CopyCompare)
	filled, err := to.Image(c.ctx)
	if err != nil {
		return done, err
	}
	defer filled.Close()
	if err := c.compare(image, filled); err != nil {
		return done, err
	}
	if now, err := c.sourceOf(from); err != nil || now != source {
		return done, errors.Join(err, ErrSourceChanged)
	}
	return c.p.Done, nil
}

// sourceOf returns the digest of a store's content.
func (c *copying) sourceOf(s Imager) (string, error) {
	image, err := s.Image(c.ctx)
	if err != nil {
		return "", err
	}
	defer image.Close()
	other := copying{ctx: c.ctx}
	return other.survey(image)
}

// LoadItems fills a store from the output of WriteItems, which it does not trust:
// *DamageError. Other errors are those of Imager.Fill.
func LoadItems(ctx context.Context, r io.Reader, to Imager) error {
	f, at, err := to.Fill(ctx, "items")
	if err != nil {
		return err
	}
	defer f.Close()
	if at.Kind != 0 {
		return ErrNotEmpty
	}
	if err := readItems(r, func(i Item) error { return f.Put(ctx, i) }); err != nil {
		return err
	}
	return f.Finish(ctx)
}

type copying struct {
	ctx  context.Context
	tell func(CopyProgress)
	p    CopyProgress
	n    int
}

func (c *copying) stage(s CopyStage) {
	c.p.Stage, c.p.Done = s, CopyTotals{}
	c.tell(c.p)
}

// many reports whether a kind has too many items to survey; items of other kinds count
// them.
func many(k ItemKind) bool { return k == EventItem || k == RecordItem || k == PieceItem }

// survey returns a digest of an image's content, and counts it.
func (c *copying) survey(image Image) (source string, err error) {
	h := sha256.New()
	for _, kind := range ItemKinds() {
		if many(kind) {
			continue
		}
		err := image.Items(c.ctx, kind, nil, func(i Item) error {
			fmt.Fprintf(h, "%d %d %d\n%s%s", kind, len(i.Key), len(i.Value), i.Key, i.Value)
			return c.p.Of.count(i)
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// count adds the totals that an item states.
func (t *CopyTotals) count(i Item) error {
	switch i.Kind {
	case RunItem:
		var v RunValue
		var r Run
		err := i.Decode(&v)
		if err == nil {
			err = Item{i.Kind, i.Key, v.Run}.Decode(&r)
		}
		if err == nil && !r.Pruned {
			t.Events += v.Next
		}
		return err
	case StreamItem:
		var v StreamValue
		err := i.Decode(&v)
		t.Records += v.Live + v.Tombstones
		return err
	case FileItem:
		t.Files++
	}
	return nil
}

// done adds an item to the progress.
func (c *copying) done(i Item) {
	c.p.Kind = i.Kind
	c.p.Done.Bytes += uint64(len(i.Key) + len(i.Value))
	switch i.Kind {
	case EventItem:
		c.p.Done.Events++
	case RecordItem:
		c.p.Done.Records++
	case FileItem:
		c.p.Done.Files++
	}
	if c.n++; c.n%500 == 0 {
		c.tell(c.p)
	}
}

func (c *copying) items(image Image, f Filler, at Place) error {
	c.p.Resumed = at.Kind != 0
	c.stage(CopyItems)
	for _, kind := range ItemKinds() {
		if kind < at.Kind {
			continue
		}
		var after []byte
		if kind == at.Kind {
			after = at.Key
		}
		err := image.Items(c.ctx, kind, after, func(i Item) error {
			c.done(i)
			return f.Put(c.ctx, i)
		})
		if err != nil {
			return err
		}
	}
	return f.Flush(c.ctx)
}

// compare returns an error for the first difference.
func (c *copying) compare(a, b Image) error {
	for _, kind := range ItemKinds() {
		next, stop := iter.Pull2(itemsOf(c.ctx, b, kind))
		err := a.Items(c.ctx, kind, nil, func(i Item) error {
			c.done(i)
			got, err, more := next()
			switch {
			case err != nil:
				return err
			case !more || !bytes.Equal(got.Key, i.Key) || !bytes.Equal(got.Value, i.Value):
				return Corrupt("the copy differs from its source in the %s, at key %.80q", kind, i.Key)
			}
			return nil
		})
		if err == nil {
			var extra Item
			var more bool
			if extra, err, more = next(); more && err == nil {
				err = Corrupt("the copy has more %s than its source: key %.80q", kind, extra.Key)
			}
		}
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

func itemsOf(ctx context.Context, image Image, kind ItemKind) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		ended := errors.New("ended")
		err := image.Items(ctx, kind, nil, func(i Item) error {
			if !yield(i, nil) {
				return ended
			}
			return nil
		})
		if err != nil && !errors.Is(err, ended) {
			yield(Item{}, err)
		}
	}
}
