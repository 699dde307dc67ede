package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/host/destination"
)

var _ destination.FileKeeper = (*Sink)(nil)

// KeepFiles implements destination.FileKeeper.
func (s *Sink) KeepFiles(ctx context.Context, list []destination.File) error {
	return s.step(ctx, func() error {
		_, err := Keep(ctx, s.root, list)
		return err
	})
}

// FilePath implements destination.FileKeeper.
func (s *Sink) FilePath(f destination.File) string { return destination.FilePath(f) }

// atOnce is how many contents are written concurrently.
const atOnce = 8

// Keep stores contents in a directory, each as destination.FilePath, and returns how many were missing. A file by that
// name is always complete, and durable when Keep returns. Contents that are gone are skipped.
func Keep(ctx context.Context, root *os.Root, list []destination.File) (fresh int, err error) {
	var missing []destination.File
	folders := map[string]bool{}
	for _, f := range list {
		name := destination.FilePath(f)
		switch fi, err := root.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
			folders[path.Dir(name)] = true
		case err != nil:
			return 0, err
		case !fi.Mode().IsRegular():
			return 0, fmt.Errorf("%w: %s", destination.ErrForeign, name)
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}
	if err := makeFolders(root, folders); err != nil {
		return 0, err
	}
	written, err := writeAll(ctx, root, missing)
	if err != nil {
		return 0, err
	}
	for _, f := range written {
		if err := root.Rename(unfinished(f), destination.FilePath(f)); err != nil {
			return 0, err
		}
	}
	for folder := range folders {
		err = errors.Join(err, syncDir(root, folder))
	}
	return len(written), err
}

// makeFolders creates folders and removes unfinished files that a crash left.
func makeFolders(root *os.Root, folders map[string]bool) error {
	before := len(folders)
	if err := root.Mkdir(destination.FilesTable, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	made := 0
	for folder := range folders {
		switch err := root.Mkdir(folder, 0o700); {
		case err == nil:
			made++
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	if err := sweep(root); err != nil || made == 0 && before > 0 {
		return err
	}
	return errors.Join(syncDir(root, destination.FilesTable), syncDir(root, "."))
}

func sweep(root *os.Root) error {
	f, err := root.Open(destination.FilesTable)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		if strings.HasPrefix(name, ".sluice-") {
			err = errors.Join(err, root.Remove(destination.FilesTable+"/"+name))
		}
	}
	return err
}

// unfinished returns the name of a content that is being written.
func unfinished(f destination.File) string {
	return destination.FilesTable + "/.sluice-" + path.Base(destination.FilePath(f))
}

// writeAll writes contents under their unfinished names and returns those that are not gone.
func writeAll(ctx context.Context, root *os.Root, list []destination.File) (written []destination.File, err error) {
	var mu sync.Mutex // guards the results
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, f := range list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			one := write(ctx, root, f)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case one == nil:
				written = append(written, f)
			case !errors.Is(one, destination.ErrGone):
				err = errors.Join(err, one)
			}
		})
	}
	wg.Wait()
	return written, err
}

func write(ctx context.Context, root *os.Root, f destination.File) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	content, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close()
	to, err := root.OpenFile(unfinished(f), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	n, err := io.Copy(disk{to}, content)
	if err == nil && n != content.Size() {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, to.Sync())
}
