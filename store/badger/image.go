package badger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// An image is the whole content of a store as of one commit:
//
//	"sluice store image\n"  format u32
//	frame  key_len u16  value_len u32  key  value        in ascending order of keys
//	piece  of a file: a frame whose key ends with the u64 number of the piece
//	end    0 u16        0 u32          frames u64        little-endian
//
// Values are complete, wherever the engine stores them. Keys that only have a meaning in this directory are left out:
// the chain, the bulk files, the parts of long values and the journals. The engine's own backup format is not used
// because it loads data with a flipped bit without an error.
const (
	imageMagic = "sluice store image\n"
	frameHead  = 2 + 4
	maxKey     = 65000    // the engine's own limit
	maxValue   = 64 << 20 // no commit has a longer value
)

// isLocal reports whether a key is meaningless in another directory.
func isLocal(kind byte) bool {
	return kind == kindChain || kind == kindFile || kind == kindChunk || kind == kindJournal
}

// isCopied reports whether an image may contain keys of a kind.
func isCopied(kind byte) bool {
	return (kind >= kindChain && kind <= kindErase || kind >= kindDue && kind <= kindUnreferenced) && !isLocal(kind)
}

var (
	_ store.Imager = (*Store)(nil)
	_ store.Image  = (*image)(nil)
)

// An image pins one commit. Between two calls it holds no snapshot.
type image struct {
	s    *disk
	ts   uint64
	once sync.Once
}

// Image implements store.Imager. It returns the damage of a damaged store, because a backup would hide it. Bulk files
// that the image needs are kept until it is closed. The engine's value log is never collected.
//
// Erasures in progress, including interrupted ones, are completed first: a store loaded with their notes would erase
// the data when it is opened and so differ from the image.
func (s *disk) Image(ctx context.Context) (store.Image, error) {
	if s.damage != nil {
		return nil, s.damage
	}
	s.eraser.partial.Lock()
	defer s.eraser.partial.Unlock()
	if err := s.eraser.finish(ctx); err != nil {
		return nil, err
	}
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return &image{s: s, ts: s.visible.repin(r.ts)}, nil
}

// Close implements store.Image.
func (i *image) Close() {
	i.once.Do(func() {
		i.s.visible.unpin(i.ts)
		i.s.removePending()
	})
}

func (i *image) snapshot(ctx context.Context) (*snapshot, error) {
	return i.s.snapshotOf(ctx, func() uint64 { return i.s.visible.repin(i.ts) })
}

// Counters implements store.Image.
func (i *image) Counters(ctx context.Context) ([]store.Counters, error) {
	r, err := i.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var out []store.Counters
	err = r.scan([]byte{kindCounters}, nil, false, func(k, payload []byte) (bool, error) {
		n, err := decodeCounters(payload)
		connection, ok := firstPart(k)
		if err == nil && !ok {
			err = store.Corrupt("key %.40q names no stream", k)
		}
		out = append(out, store.Counters{
			Connection: store.ConnectionID(connection), Stream: store.Stream(lastPart(k)),
			Live: n.live, Tombstones: n.tombstones, LastVersion: n.last, Sum: fmt.Sprintf("%016x%016x", n.sum.hi, n.sum.lo),
		})
		return true, err
	})
	return out, err
}

// firstPart returns the first part of a key of two parts.
func firstPart(k []byte) (string, bool) {
	if len(k) < 3 {
		return "", false
	}
	n := int(binary.BigEndian.Uint16(k[1:]))
	if len(k) < 3+n {
		return "", false
	}
	return string(k[3 : 3+n]), true
}

// Copy implements store.Copier.
func (i *image) Copy(ctx context.Context, w io.Writer) error {
	r, err := i.snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	b := bufio.NewWriterSize(w, 256<<10)
	head := binary.LittleEndian.AppendUint32([]byte(imageMagic), format)
	if _, err := b.Write(head); err != nil {
		return err
	}
	frames := uint64(0)
	frame := func(k, payload []byte) error {
		frames++
		head = binary.LittleEndian.AppendUint16(head[:0], uint16(len(k)))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(payload)))
		for _, part := range [][]byte{head, k, payload} {
			if _, err := b.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
	err = r.scan(nil, nil, false, func(k, payload []byte) (bool, error) {
		if isLocal(k[0]) {
			return true, ctx.Err()
		}
		if l, _ := i.s.space.state(); l == halted {
			return false, store.ErrNoSpace // the engine closes once this ends
		}
		if k[0] == kindLocation {
			return true, i.s.copyPieces(ctx, k, payload, frame)
		}
		if err := frame(k, payload); err != nil {
			return false, err
		}
		return true, ctx.Err()
	})
	if err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint64(make([]byte, frameHead), frames)
	if _, err := b.Write(end); err != nil {
		return err
	}
	return b.Flush()
}

// Bounds of what Load submits at once: bytes in bulk files, and operations in flight. What enters the transaction is
// bounded by opBytes.
const (
	loadBulk     = 1 << 20
	loadInflight = 16
)

// Load implements store.Loader.
func (s *disk) Load(ctx context.Context, r io.Reader) error {
	if s.visible.newest() != 0 {
		return store.ErrNotEmpty
	}
	l := &loader{s: s, ctx: ctx, in: &frameReader{r: bufio.NewReaderSize(r, 256<<10)}}
	err := l.load()
	for _, receipt := range l.inflight { // wait for all that was submitted, even after an error
		_, failed := receipt.Result()
		err = errors.Join(err, failed)
	}
	return err
}

type loader struct {
	s        *disk
	ctx      context.Context
	in       *frameReader
	writes   []write // values made with newValue
	engine   int64   // how many of their bytes go into the transaction
	bulk     int64
	inflight []*store.Receipt
	piece    *pieceAssembler // of the file being read, or nil
}

func (l *loader) load() error {
	if err := l.in.begin(); err != nil {
		return err
	}
	for {
		k, v, err := l.in.next()
		if err != nil {
			return err
		}
		if k != nil && k[0] == kindLocation {
			if err := l.addPiece(k, v[1:]); err != nil {
				return err
			}
			continue
		}
		if err := l.endPieces(); err != nil {
			return err
		}
		if k == nil {
			return l.flush()
		}
		if err := wholeContent(k, v); err != nil {
			return err
		}
		l.writes = append(l.writes, write{k, v})
		if n := int64(len(k) + len(v)); isBulk(k[0]) || len(v) >= bulkValue {
			l.engine += int64(len(k)) + bulk.PlaceBytes + writeOverhead
			l.bulk += n
		} else {
			l.engine += n + writeOverhead
		}
		if l.engine < opBytes-bulkValue && l.bulk < loadBulk {
			continue
		}
		if err := l.flush(); err != nil {
			return err
		}
	}
}

// flush submits what was read as one operation. If many are in flight, it waits for the oldest.
func (l *loader) flush() error {
	if len(l.writes) == 0 {
		return nil
	}
	if err := l.s.writable(); err != nil {
		return err
	}
	if len(l.inflight) == loadInflight {
		_, err := l.inflight[0].Result()
		l.inflight = l.inflight[1:]
		if err != nil {
			return err
		}
	}
	writes, bytes := l.writes, l.engine+l.bulk
	l.writes, l.engine, l.bulk = nil, 0, 0
	receipt, settle := store.NewReceipt()
	op := func(g *group) error {
		for _, w := range writes {
			g.load(w.key, w.value)
		}
		return nil
	}
	if err := l.s.queue.push(l.ctx, &item{op: op, bytes: bytes, settle: settle}); err != nil {
		return err
	}
	l.inflight = append(l.inflight, receipt)
	return nil
}

// isBulk reports whether values of a kind are in bulk files regardless of their size.
func isBulk(kind byte) bool { return kind == kindSegment || kind == kindPage || kind == kindFilter }

// load writes a value in the same way as the regular writer of its kind.
func (g *group) load(k, value []byte) {
	small := false // regardless of its size
	switch k[0] {
	case kindNumber, kindFence, kindRunHead, kindRunOf, kindCounters, kindDeadChunk, kindErase, kindDue, kindUsage:
		small = true
	}
	if payload := value[1:]; isBulk(k[0]) || !small && g.bulky(len(payload)) {
		g.putPayload(k, payload)
		return
	}
	g.put(k, value)
}

// A frameReader reads an image, which is untrusted.
type frameReader struct {
	r      *bufio.Reader
	last   []byte
	frames uint64
}

func (f *frameReader) begin() error {
	head := make([]byte, len(imageMagic)+4)
	if err := f.fill(head); err != nil {
		return err
	}
	if string(head[:len(imageMagic)]) != imageMagic {
		return store.Corrupt("this is no image of a store")
	}
	if n := binary.LittleEndian.Uint32(head[len(imageMagic):]); n != format {
		return fmt.Errorf("the image has store format %d; this program reads format %d", n, format)
	}
	return nil
}

// next returns the next key and its value, which is made with newValue. At the end the key is nil.
func (f *frameReader) next() (k, v []byte, err error) {
	var head [frameHead]byte
	if err := f.fill(head[:]); err != nil {
		return nil, nil, err
	}
	n, size := int(binary.LittleEndian.Uint16(head[:])), binary.LittleEndian.Uint32(head[2:])
	if n == 0 {
		return nil, nil, f.end(size)
	}
	if n > maxKey || size > maxValue {
		return nil, nil, store.Corrupt("image frame %d has a key of %d bytes and a value of %d", f.frames, n, size)
	}
	k = make([]byte, n)
	if err := f.fill(k); err != nil {
		return nil, nil, err
	}
	if !isCopied(k[0]) {
		return nil, nil, store.Corrupt("image frame %d has a key of an unknown kind, %.40q", f.frames, k)
	}
	if bytes.Compare(k, f.last) <= 0 {
		return nil, nil, store.Corrupt("image frame %d has a key out of order, %.40q", f.frames, k)
	}
	if v, err = f.value(int64(size)); err != nil {
		return nil, nil, err
	}
	f.last = k
	f.frames++
	return k, v, nil
}

// value reads a value. It allocates memory as bytes arrive, not by the size that the frame claims.
func (f *frameReader) value(size int64) ([]byte, error) {
	if size <= 64<<10 {
		v := newValue(int(size))[:1+size]
		return v, f.fill(v[1:])
	}
	b := bytes.NewBuffer(newValue(64 << 10))
	if _, err := io.CopyN(b, f.r, size); err != nil {
		return nil, f.cut(err)
	}
	return b.Bytes(), nil
}

func (f *frameReader) end(size uint32) error {
	var count [8]byte
	if err := f.fill(count[:]); err != nil {
		return err
	}
	if n := binary.LittleEndian.Uint64(count[:]); size != 0 || n != f.frames {
		return store.Corrupt("the image ends after %d frames of %d", f.frames, n)
	}
	switch _, err := f.r.ReadByte(); {
	case err == nil:
		return store.Corrupt("the image goes on after its end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read image: %w", err)
	}
	return nil
}

func (f *frameReader) fill(b []byte) error {
	_, err := io.ReadFull(f.r, b)
	return f.cut(err)
}

func (f *frameReader) cut(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return store.Corrupt("the image is cut in frame %d", f.frames)
	}
	return fmt.Errorf("read image: %w", err)
}
