package run

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// A piece of a history is sealed with the key of its run. It has the tag of the piece before it,
// and then entries:
//
//	call    u8 1  u16 call  hash of the request
//	result  u8 2  u16 errno  u32 len  bytes        of a call that was handled outside of the loop
//	reply   u8 3  u16 errno  u64 ms since 1970  hash of the reply
//	answer  u8 4  u32 len  JSON                   how a question ended
//	mark    u8 5  u32 len  JSON                   an open question; the last entry of its piece
//	commit  u8 6  u32 len  JSON                   a commit that includes the entries before it
//	intent  u8 7  u32 len                         a request is about to be sent
//	held    u8 8  u32 len  bytes                  what the network holds for the run
//	begin   u8 9  u32 len  JSON                   how the run was started; the only entry of its piece
//	passed  u8 10 u64 ms since 1970               a reply that is the result before it
//
// Only the journals of resumable runs have entries of kinds 6 to 9.
// Numbers are little-endian; a hash is the first 16 bytes of SHA-256.
const (
	entryCall = 1 + iota
	entryResult
	entryReply
	entryAnswer
	entryMark
	entryCommit
	entryIntent
	entryHeld
	entryBegin
	entryPassed
)

const (
	pieceBytes16 = 16 // size of a hash, and of a tag
	pieceEntries = 192 << 10
)

// errHistory is returned for a history that was changed, cut or belongs to another run.
var errHistory = errors.New("the journal of the run is damaged")

// errShort is returned for an entry that continues in the next piece.
var errShort = fmt.Errorf("%w: it ends in an entry", errHistory)

type hash16 [pieceBytes16]byte

func hashOf(b []byte) hash16 {
	sum := sha256.Sum256(b)
	return hash16(sum[:pieceBytes16])
}

// An entry is one fact of a history.
type entry struct {
	kind byte
	code uint16 // call or errno
	at   uint64
	hash hash16
	data []byte
}

func (e entry) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, e.kind)
	if e.kind <= entryReply {
		b = le.AppendUint16(b, e.code)
	}
	switch e.kind {
	case entryCall:
		return append(b, e.hash[:]...)
	case entryReply:
		return append(le.AppendUint64(b, e.at), e.hash[:]...)
	case entryPassed:
		return le.AppendUint64(b, e.at)
	}
	return append(le.AppendUint32(b, uint32(len(e.data))), e.data...)
}

// parseEntry reads the first entry of b. Its data aliases b.
func parseEntry(b []byte) (e entry, rest []byte, err error) {
	if len(b) == 0 {
		return e, nil, errShort
	}
	le, want := binary.LittleEndian, 5
	switch k := b[0]; {
	case k == 0 || k > entryPassed:
		return e, nil, errHistory
	case k == entryCall:
		want = 3 + pieceBytes16
	case k == entryResult:
		want = 7
	case k == entryReply:
		want = 11 + pieceBytes16
	case k == entryPassed:
		want = 9
	}
	if len(b) < want {
		return e, nil, errShort
	}
	e.kind, rest = b[0], b[want:]
	if e.kind <= entryReply {
		e.code = le.Uint16(b[1:])
	}
	switch e.kind {
	case entryCall:
		copy(e.hash[:], b[3:])
		return e, rest, nil
	case entryReply:
		e.at = le.Uint64(b[3:])
		copy(e.hash[:], b[11:])
		return e, rest, nil
	case entryPassed:
		e.at = le.Uint64(b[1:])
		return e, rest, nil
	}
	n := le.Uint32(b[want-4:])
	if uint64(n) > uint64(len(rest)) {
		return e, nil, errShort
	}
	e.data = rest[:n:n]
	return e, rest[n:], nil
}

// A sealer seals and opens the pieces of the history of one run.
type sealer struct {
	aead cipher.AEAD
	id   store.RunID
}

func newSealer(key []byte, id store.RunID) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of the journal: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead, id}, err
}

// place returns the additional data that binds a piece to its run and number.
func (s *sealer) place(n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte("sluice journal 1 "+string(s.id)+" "), n)
}

// seal returns the nth piece. plain is the tag of the piece before it, then entries.
func (s *sealer) seal(n uint64, plain []byte) []byte {
	return s.aead.Seal(nil, nil, plain, s.place(n)) // #nosec G407 -- it makes the nonce itself
}

// open returns the tag of the piece before, and the entries.
func (s *sealer) open(n uint64, piece []byte) (before hash16, entries []byte, err error) {
	plain, err := s.aead.Open(nil, nil, piece, s.place(n))
	if err != nil || len(plain) < pieceBytes16 {
		return before, nil, errHistory
	}
	return hash16(plain), plain[pieceBytes16:], nil
}

// lengthAt is the number of the piece that holds how many pieces the journal of a resumable run has, and the tag of
// the last one. It is replaced with each commit that adds pieces, so that one that is missing at the end is noticed.
const lengthAt = firstOutOfOrder - 1

// sealLength returns that piece.
func (s *sealer) sealLength(pieces uint64, last hash16) store.JournalPiece {
	return store.JournalPiece{N: lengthAt, Data: s.seal(lengthAt, binary.LittleEndian.AppendUint64(last[:], pieces))}
}

// checkLength checks that a journal that was read up to the given piece ends there.
func (s *sealer) checkLength(length []byte, pieces uint64, last hash16) error {
	tag, n, err := s.open(lengthAt, length)
	if err == nil && (tag != last || len(n) != 8 || binary.LittleEndian.Uint64(n) != pieces) {
		err = fmt.Errorf("%w: pieces are missing at its end", errHistory)
	}
	return err
}

// tagOf returns the tag at the end of a sealed piece, which is unique to it.
func tagOf(piece []byte) hash16 { return hash16(piece[len(piece)-pieceBytes16:]) }

// A journalReader reads a history from a store, piece by piece.
type journalReader struct {
	*sealer
	load    func(ctx context.Context, n uint64) ([]byte, error)
	pieces  uint64 // 0 means all that exist
	next    uint64 // number of the next piece
	last    hash16 // tag of the piece before it
	entries []byte // unread entries of the pieces read so far

	readBytes, takenBytes int    // of entries read, and of entries taken
	commit                []byte // data of the newest commit entry that was taken
}

// parse returns the next entry, and reads pieces as needed. The entry has kind 0 at the end.
func (p *journalReader) parse(ctx context.Context) (e entry, rest []byte, err error) {
	for {
		e, rest, err = parseEntry(p.entries)
		if err == nil || !errors.Is(err, errShort) {
			return e, rest, err
		}
		read := errEnd
		if p.pieces == 0 || p.next < p.pieces {
			read = p.read(ctx)
		}
		switch {
		case errors.Is(read, errEnd) && len(p.entries) == 0:
			return entry{}, nil, nil
		case errors.Is(read, errEnd):
			return entry{}, nil, err
		case read != nil:
			return entry{}, nil, read
		}
	}
}

// errEnd is returned if there are no more pieces.
var errEnd = errors.New("the end of the journal")

// read reads the next piece.
func (p *journalReader) read(ctx context.Context) error {
	piece, err := p.load(ctx, p.next)
	if p.pieces == 0 && errors.Is(err, store.ErrNotFound) {
		return errEnd
	}
	if err != nil {
		return fmt.Errorf("read piece %d of the journal: %w", p.next, err)
	}
	before, entries, err := p.open(p.next, piece)
	if err == nil && before != p.last {
		err = errHistory
	}
	if err != nil {
		return err
	}
	p.next, p.last, p.entries = p.next+1, tagOf(piece), append(p.entries, entries...)
	p.readBytes += len(entries)
	return nil
}

// peek returns the next entry, of kind 0 at the end. It skips commits of events only, whose place depends on the
// time.
func (p *journalReader) peek(ctx context.Context) (entry, error) {
	for {
		e, _, err := p.parse(ctx)
		if err != nil || e.kind != entryBegin && (e.kind != entryCommit || ofFacts(e)) {
			return e, err
		}
		if _, err := p.takeAny(ctx); err != nil {
			return e, err
		}
	}
}

// parsed returns the next entry of any kind without taking it, of kind 0 at the end.
func (p *journalReader) parsed(ctx context.Context) (entry, error) {
	e, _, err := p.parse(ctx)
	return e, err
}

// take returns the same entry as peek and takes it.
func (p *journalReader) take(ctx context.Context) (entry, error) {
	if _, err := p.peek(ctx); err != nil {
		return entry{}, err
	}
	return p.takeAny(ctx)
}

// takeAny takes the next entry of any kind.
func (p *journalReader) takeAny(ctx context.Context) (entry, error) {
	e, rest, err := p.parse(ctx)
	if err != nil {
		return e, err
	}
	p.entries = rest
	if e.kind != 0 {
		p.takenBytes++
	}
	if e.kind == entryCommit {
		p.commit = e.data
	}
	return e, nil
}
