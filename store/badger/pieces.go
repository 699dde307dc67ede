package badger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"

	"github.com/sluicehost/sluice/store"
)

// fileNamed returns the connection and digest in a key made by fileKey.
func fileNamed(k []byte) (c store.ConnectionID, d store.Digest, ok bool) {
	connection, digest, ok := cutPart(k[1:])
	d, err := store.ParseDigest(string(digest))
	return store.ConnectionID(connection), d, ok && err == nil
}

// copyPieces writes a long content as frames and verifies its digest.
func (s *disk) copyPieces(ctx context.Context, k, payload []byte, frame func(k, v []byte) error) error {
	p, err := decodeLocation(payload)
	if err != nil {
		return err
	}
	_, d, ok := fileNamed(k)
	if !ok {
		return store.Corrupt("key %.40q names no file", k)
	}
	at, err := s.contentFiles.open(p.Name)
	if err != nil {
		return store.Corrupt("file %s: %v", d, err)
	}
	c := &longContent{at: at, place: p, digest: d, block: -1}
	defer c.Close()
	n := uint64(0)
	return checkContent(ctx, c, d, func(b []byte) error {
		n++
		return frame(binary.BigEndian.AppendUint64(k[:len(k):len(k)], n-1), b)
	})
}

// pieceAssembler is the state of a file of an image while it is loaded.
type pieceAssembler struct {
	key    []byte // of the file
	digest store.Digest
	hash   hash.Hash
	n      uint64
	to     *contentWriter
}

// addPiece takes the next piece of a file. endPieces verifies the whole.
func (l *loader) addPiece(k, b []byte) error {
	if len(k) < 8 {
		return store.Corrupt("image frame %d is no piece of a file", l.in.frames)
	}
	of, n := k[:len(k)-8], lastNumber(k)
	if l.piece == nil || string(l.piece.key) != string(of) {
		if err := l.endPieces(); err != nil {
			return err
		}
		_, d, ok := fileNamed(of)
		if !ok {
			return store.Corrupt("image frame %d is no piece of a file", l.in.frames)
		}
		to, err := l.s.contentFiles.create()
		if err != nil {
			return err
		}
		l.piece = &pieceAssembler{key: of, digest: d, hash: sha256.New(), to: to}
	}
	p := l.piece
	if n != p.n || len(b) == 0 || len(b) > blockBytes {
		p.to.abandon()
		return store.Corrupt("image frame %d: piece %d of file %s comes as piece %d", l.in.frames, n, p.digest, p.n)
	}
	p.n++
	p.hash.Write(b)
	_, err := p.to.Write(b)
	return err
}

// endPieces verifies the file whose pieces have arrived and adds it to the store.
func (l *loader) endPieces() error {
	p := l.piece
	if p == nil {
		return nil
	}
	l.piece = nil
	if store.DigestOf(p.hash.Sum(nil)) != p.digest {
		p.to.abandon()
		return store.Corrupt("the image has another content for file %s", p.digest)
	}
	at, err := p.to.finish()
	if err != nil {
		return err
	}
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	l.writes = append(l.writes, write{p.key, append(newValue(len(text)), text...)})
	l.engine += int64(len(p.key)+len(text)) + writeOverhead
	return nil
}

// wholeContent verifies that a short content of an image matches the digest in its key.
func wholeContent(k, v []byte) error {
	if k[0] != kindContent {
		return nil
	}
	if _, d, ok := fileNamed(k); !ok || sumOf(v[1:]) != d {
		return store.Corrupt("the image has another content for the file of key %.40q", k)
	}
	return nil
}

// verifyFiles reads every content and checks the reference counts: the sum of fileNumber over all references that
// records hold must equal the sum over all files of count times fileNumber.
func (s *disk) verifyFiles(ctx context.Context, r reader) error {
	var sum uint64
	usage := map[store.ConnectionID]store.FileUsage{}
	err := r.scan([]byte{kindFileOf}, nil, false, func(k, payload []byte) (bool, error) {
		var f fileOf
		c, d, ok := fileNamed(k)
		if err := json.Unmarshal(payload, &f); err != nil || !ok || f.Digest != d {
			return false, store.Corrupt("key %.40q holds no file", k)
		}
		if erased, err := r.erased(c); err != nil || erased {
			return true, err
		}
		content, err := s.content(r, c, f)
		if err != nil {
			return false, err
		}
		defer content.Close()
		sum += uint64(f.Refs) * fileNumber(c, d)
		u := usage[c]
		usage[c] = store.FileUsage{Files: u.Files + 1, Bytes: u.Bytes + uint64(f.Size)}
		return true, checkContent(ctx, content, d, nil)
	})
	if err != nil {
		return err
	}
	err = r.scan([]byte{kindHeld}, nil, false, func(k, payload []byte) (bool, error) {
		connection, _ := firstPart(k)
		c := store.ConnectionID(connection)
		if erased, err := r.erased(c); err != nil || erased {
			return true, err
		}
		held, err := decodeHeld(k, payload)
		for _, h := range digests(held) {
			sum -= fileNumber(c, h.Digest)
		}
		return true, err
	})
	if err == nil && sum != 0 {
		err = store.Corrupt("records hold other files than are counted")
	}
	for c, u := range usage {
		if err != nil {
			break
		}
		b, ok, bad := r.get(key(kindUsage, string(c)))
		if err = bad; err == nil && (!ok || string(b) != string(usageValue(u)[1:])) {
			err = store.Corrupt("connection %s has %d files of %d bytes, and counts others", c, u.Files, u.Bytes)
		}
	}
	return err
}

// fileNumber returns a number that two files are unlikely to share.
func fileNumber(c store.ConnectionID, d store.Digest) uint64 {
	sum := sha256.Sum256(fileKey(kindFileOf, c, d))
	return binary.BigEndian.Uint64(sum[:])
}
