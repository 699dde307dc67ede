package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/age"
)

// maxFile bounds the file of a secret: the longest value and what age and the envelope add, which
// is less than 1 KiB.
const maxFile = MaxValue + 4096

// envelope returns what a value is preceded by, so that files cannot be swapped: connection and
// name, each after one byte of length.
//
//	┌───┬────────────┬───┬──────┬───────┐
//	│ n │ connection │ n │ name │ value │
//	└───┴────────────┴───┴──────┴───────┘
func envelope(connection, name string) []byte {
	out := append([]byte{byte(len(connection))}, connection...)
	return append(append(out, byte(len(name))), name...)
}

func seal(to age.Recipient, connection, name string, value []byte) ([]byte, error) {
	out, err := encrypt(to, slices.Concat(envelope(connection, name), value))
	if err != nil {
		return nil, fmt.Errorf("seal secret %s of %s: %w", name, connection, err)
	}
	return out, nil
}

// encrypt returns an age file of plain, which it clears.
func encrypt(to age.Recipient, plain []byte) ([]byte, error) {
	defer clear(plain)
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	return out.Bytes(), err
}

// unseal returns the value in a new slice.
func unseal(ids []*age.X25519Identity, connection, name string, file []byte) ([]byte, error) {
	var keys []age.Identity
	for _, id := range ids {
		keys = append(keys, id)
	}
	r, err := age.Decrypt(bytes.NewReader(file), keys...)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, fmt.Errorf(
			"open secret %s of %s: %w: the identity is another than it was set under, or the file is damaged; "+
				"bring back your copy of keys/%s, or set the secret again", name, connection, ErrKey, identityFile)
	}
	if err != nil {
		return nil, damaged(connection, name, err)
	}
	plain := make([]byte, len(file)) // longer than the content, so it never grows and leaves copies
	defer clear(plain)
	n, err := io.ReadFull(r, plain)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, damaged(connection, name, err)
	}
	value, ok := bytes.CutPrefix(plain[:n], envelope(connection, name))
	if !ok {
		return nil, damaged(connection, name, errors.New("its file holds another secret"))
	}
	if len(value) == 0 || len(value) > MaxValue {
		return nil, damaged(connection, name, fmt.Errorf("it has %d bytes", len(value)))
	}
	return slices.Clone(value), nil
}

func damaged(connection, name string, why error) error {
	return fmt.Errorf("open secret %s of %s: %w: %w; set it again", name, connection, ErrDamaged, why)
}
