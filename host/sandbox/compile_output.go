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

// mostOutput is how many names are looked at below a directory of code: the engine's
// directory, the file, the one it is before it is whole, and one that is too many.
const mostOutput = 4

// outputPoll is how often the output of a compile worker is looked at while it works.
const outputPoll = 20 * time.Millisecond

// onlyFile returns the one file below root. Anything besides it and its
// directories is an error, and so are many names: whoever filled it may have made
// millions, or nested thousands.
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

// listOutput returns what is below root, by path; fewer than mostOutput names.
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

// guard ends the context it returns when there is more below dir than one file of at
// most limit bytes, with what a compile worker is told then as the cause. A worker that
// its module took over would otherwise fill the disk until its time is over.
func guard(ctx context.Context, dir string, limit int64) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		for ticker := time.NewTicker(outputPoll); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
			}
			if err := tooMuch(dir, limit); err != nil {
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

func tooMuch(dir string, limit int64) error {
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
