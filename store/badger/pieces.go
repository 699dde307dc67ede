package badger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/sluicehost/sluice/store"
)

// fileNamed returns the connection and digest in a key made by fileKey.
func fileNamed(k []byte) (c store.ConnectionID, d store.Digest, ok bool) {
	connection, digest, ok := cutPart(k[1:])
	d, err := store.ParseDigest(string(digest))
	return store.ConnectionID(connection), d, ok && err == nil
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
