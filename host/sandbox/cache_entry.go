package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
)

// maxEntryJSON is the size limit of entry.json, in bytes.
const maxEntryJSON = 4 << 10

// codeName matches the engine's file in an entry: a directory named after the engine's version, and a digest.
var codeName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^wazero-[A-Za-z0-9.+_-]{1,64}/[0-9a-f]{64}$`)
})

// entryMeta is the content of entry.json: the code that belongs to a key.
type entryMeta struct {
	File   string `json:"file"` // below code/
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	HMAC   string `json:"hmac"`
}

// seal returns the HMAC over the key and all other fields.
func (m entryMeta) seal(secret []byte, key string) string {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n", key, m.File, m.SHA256, m.Size)
	return hex.EncodeToString(h.Sum(nil))
}

func readEntry(path string) (m entryMeta, err error) {
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer f.Close() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxEntryJSON+1))
	if err != nil {
		return m, err
	}
	if len(text) > maxEntryJSON {
		return m, errors.New("entry.json is too long")
	}
	return m, json.Unmarshal(text, &m)
}

// codePath returns the path of a key's code. It does not authenticate the entry; examine does.
func (c *cache) codePath(key string) (string, error) {
	m, err := readEntry(filepath.Join(c.dir, key, entryFile))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBadEntry, err)
	}
	if !codeName().MatchString(m.File) {
		return "", fmt.Errorf("%w: a file called %q", errBadEntry, m.File)
	}
	return filepath.Join(c.dir, key, codeDir, filepath.FromSlash(m.File)), nil
}

// examine checks an entry completely: HMAC, owner, mode, links, every byte of the code, and that the code directory
// holds nothing else. It returns the size of the code.
func (c *cache) examine(key string) (size int64, err error) {
	m, err := readEntry(filepath.Join(c.dir, key, entryFile))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errBadEntry, err)
	}
	if want := m.seal(c.key, key); !hmac.Equal([]byte(want), []byte(m.HMAC)) {
		return 0, fmt.Errorf("%w: not authenticated", errBadEntry)
	}
	if !codeName().MatchString(m.File) || m.Size > c.mostEntry {
		return 0, fmt.Errorf("%w: a file called %q of %d bytes", errBadEntry, m.File, m.Size)
	}
	root, err := os.OpenRoot(filepath.Join(c.dir, key, codeDir))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errBadEntry, err)
	}
	defer root.Close() // only read
	found, err := onlyFile(root)
	if err != nil || found != m.File {
		return 0, fmt.Errorf("%w: has %q, want %q: %v", errBadEntry, found, m.File, err)
	}
	sum, size, err := c.digest(filepath.Join(c.dir, key, codeDir, filepath.FromSlash(m.File)))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errBadEntry, err)
	}
	if sum != m.SHA256 || size != m.Size {
		return 0, fmt.Errorf("%w: %d bytes of digest %s, want %d of %s", errBadEntry, size, sum, m.Size, m.SHA256)
	}
	return size, nil
}

// digest hashes a file after it has checked that only this user can have written it.
func (c *cache) digest(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() || !owned(info) || links(info) != 1 || info.Mode().Perm()&^c.fileMode() != 0 {
		return "", 0, fmt.Errorf("the file is %v, not this host's own", info.Mode())
	}
	h := sha256.New()
	if size, err = io.Copy(h, io.LimitReader(f, c.mostEntry+1)); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// store copies code from a worker's output into a new entry that this host owns, and replaces the key's entry with it.
func (c *cache) store(key, name string, code io.Reader) (err error) {
	stage, err := os.MkdirTemp(c.dir, newPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	path := filepath.Join(stage, codeDir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	m := entryMeta{File: name}
	if m.SHA256, m.Size, err = c.copyCode(path, code); err != nil {
		return err
	}
	m.HMAC = m.seal(c.key, key)
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(stage, entryFile), text, 0o600); err != nil {
		return err
	}
	for _, dir := range []string{stage, filepath.Join(stage, codeDir), filepath.Dir(path)} {
		if err := errors.Join(os.Chmod(dir, c.dirMode()), c.share(dir)); err != nil {
			return err
		}
	}
	place := filepath.Join(c.dir, key)
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	return os.Rename(stage, place)
}

// copyCode writes the file at path and returns its digest and size.
func (c *cache) copyCode(path string, code io.Reader) (sum string, size int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, h), io.LimitReader(code, c.mostEntry+1))
	if err == nil && size > c.mostEntry {
		err = fmt.Errorf("compiled code is over %d bytes", c.mostEntry)
	}
	if err = errors.Join(err, f.Chmod(c.fileMode()), c.share(path), f.Close()); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
