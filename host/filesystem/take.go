package filesystem

import (
	"errors"
	"io"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// Take opens a file by the guest's absolute path, for the host to read on the guest's
// behalf. It refuses directories and whatever the guest itself could not open for reading.
// It is not called during Handle. The caller closes the file.
func (f *FS) Take(path string) (io.ReadCloser, error) {
	for _, m := range f.mounts {
		rest, ok := strings.CutPrefix(path, m.Path+"/")
		if !ok {
			continue
		}
		p, err := parsePath(rest)
		if err != nil {
			return nil, err
		}
		return m.take(p)
	}
	return nil, refuse(abi.ENOENT)
}

func (m *mount) take(p guestPath) (io.ReadCloser, error) {
	for range openTries {
		h, fi, err := m.openOnce(p, abi.FileRead)
		switch {
		case errors.Is(err, errChanged):
			continue
		case err != nil:
			return nil, err
		case !fi.Mode().IsRegular():
			return nil, errors.Join(refuse(abi.EDENIED), h.file.Close())
		}
		return h.file, nil
	}
	return nil, refuse(abi.EDENIED)
}
