package signature

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Suffix is appended to a module's file name for its signature.
const Suffix = ".minisig"

// PublicSuffix is appended to a private key's file name for its public key.
const PublicSuffix = ".pub"

// ReadFile reads a small regular file of at most most bytes.
func ReadFile(path string, most int) ([]byte, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path) // reading a pipe would block
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(b) > most:
		return nil, fmt.Errorf("%s has more than %d bytes, which no key or signature has", path, most)
	}
	return b, nil
}

// WriteKey writes a private key's file and, beside it, its public key. It does not replace files
// (fs.ErrExist), since a lost key cannot be recovered.
func WriteKey(path string, private []byte, public PublicKey) error {
	if err := create(path+PublicSuffix, public.Marshal()); err != nil {
		return err
	}
	if err := create(path, private); err != nil {
		return errors.Join(err, os.Remove(path+PublicSuffix))
	}
	return nil
}

func create(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write key: %w", err), os.Remove(path))
	}
	return nil
}
