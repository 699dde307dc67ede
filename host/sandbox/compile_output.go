package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// mostOutput bounds the names read below a directory of code: the engine's directory, the
// file, its temporary name, and one too many.
const mostOutput = 4

// outputPoll is how often the output of a compile worker is checked during compilation.
const outputPoll = 20 * time.Millisecond

// onlyFile returns the only file below root. It refuses other files and large numbers of
// names, because the directory may contain millions, or thousands of levels.
func onlyFile(root *os.Root) (string, error) {
	found, err := listOutput(root)
	if err != nil {
		return "", err
	}
	name := ""
	for path, info := range found {
		switch {
		case info.IsDir():
		case !info.Mode().IsRegular():
			return "", fmt.Errorf("%q is no regular file", path)
		case name != "":
			return "", fmt.Errorf("more than one file: %q", path)
		default:
			name = path
		}
	}
	if name == "" {
		return "", errors.New("no file")
	}
	return name, nil
}

// listOutput returns fewer than mostOutput names below root, by path.
func listOutput(root *os.Root) (map[string]fs.FileInfo, error) {
	found := map[string]fs.FileInfo{}
	for dirs := []string{"."}; len(dirs) > 0; dirs = dirs[1:] {
		list, err := someNames(root, dirs[0], mostOutput-len(found))
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			name = path.Join(dirs[0], name)
			info, err := root.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // renamed since
			}
			if err != nil {
				return nil, err
			}
			if found[name] = info; info.IsDir() {
				dirs = append(dirs, name)
			}
		}
		if len(found) >= mostOutput {
			return nil, fmt.Errorf("%d names or more", mostOutput)
		}
	}
	return found, nil
}

// someNames reads at most n names of a directory.
func someNames(root *os.Root, dir string, n int) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	list, err := f.Readdirnames(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}

// limitOutput returns a context that ends, with the compile worker's error as cause, when dir
// contains more than one file of limit bytes. Otherwise a worker that its module has taken
// over could fill the disk until its time is over.
func limitOutput(ctx context.Context, dir string, limit int64) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		for ticker := time.NewTicker(outputPoll); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
			}
			if err := errTooMuch(dir, limit); err != nil {
				end(&Failure{Code: CodeCompileFailed, Detail: "compiler writes something else: " + err.Error()})
			}
		}
	}()
	return ctx, func() { end(nil) }
}

// contextReader is a reader that fails when its context has ended.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (d contextReader) Read(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	return d.Reader.Read(p)
}

func errTooMuch(dir string, limit int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() // only read
	found, err := listOutput(root)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, info := range found {
		sum += info.Size()
	}
	if limit += mostOutput << 12; sum > limit { // directories have a size too
		return fmt.Errorf("%d bytes", sum)
	}
	return nil
}
