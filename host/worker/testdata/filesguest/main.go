// Command filesguest uses files as any Go program does, and says what it saw.
// It knows nothing of Sluice.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	steps := map[string]func() error{"walk": walk, "write": write, "errors": refusals, "seek": seek, "bench": bench, "stream": stream}
	for _, name := range os.Args[1:] {
		if err := steps[name](); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// walk prints everything below /data with its content.
func walk() error {
	return fs.WalkDir(os.DirFS("/data"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			fmt.Printf("%s/\n", path)
			return nil
		}
		b, err := os.ReadFile(filepath.Join("/data", path))
		if err != nil {
			return err
		}
		if int64(len(b)) != fi.Size() && d.Type().IsRegular() {
			return fmt.Errorf("%s: read %d of %d bytes", path, len(b), fi.Size())
		}
		fmt.Printf("%s %s %d %.20q\n", path, d.Type(), len(b), b)
		return nil
	})
}

// write makes, changes, moves and removes files in the directories where it can.
func write() error {
	for _, dir := range []string{"/out", "/tmp"} {
		if err := writeIn(dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

func writeIn(dir string) error {
	deep := filepath.Join(dir, "a", "b")
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // 3.2 MB
	name := filepath.Join(deep, "f")
	other := filepath.Join(dir, "other")
	when := time.Unix(1_000_000_000, 500)
	for _, step := range []func() error{
		func() error { return os.MkdirAll(deep, 0o755) },
		func() error { return os.MkdirAll(deep, 0o755) },
		func() error { return os.WriteFile(name, big, 0o644) },
		func() error { return same(name, big) },
		func() error { return os.WriteFile(name, []byte("short"), 0o644) },
		func() error { return same(name, []byte("short")) },
		func() error { return appendTo(name, "er", " still") },
		func() error { return same(name, []byte("shorter still")) },
		func() error { return os.Truncate(name, 5) },
		func() error { return same(name, []byte("short")) },
		func() error { return os.Chtimes(name, when, when) },
		func() error {
			fi, err := os.Stat(name)
			if err == nil && !fi.ModTime().Equal(when) {
				err = fmt.Errorf("time is %v", fi.ModTime())
			}
			return err
		},
		func() error { return os.Rename(name, other) },
		func() error { return same(other, []byte("short")) },
		func() error { return readAndWrite(other) },
		func() error { return temporary(dir) },
		func() error { return os.Remove(other) },
		func() error { return os.RemoveAll(filepath.Join(dir, "a")) },
		func() error {
			list, err := os.ReadDir(dir)
			if err == nil && len(list) != 0 {
				err = fmt.Errorf("left: %v", list)
			}
			return err
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println(dir, "written")
	return nil
}

func same(name string, want []byte) error {
	b, err := os.ReadFile(name)
	if err == nil && !bytes.Equal(b, want) {
		err = fmt.Errorf("%s has %d bytes, want %d", name, len(b), len(want))
	}
	return err
}

func appendTo(name string, parts ...string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := f.WriteString(p); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// readAndWrite has one file open twice: what one writes the other reads.
func readAndWrite(name string) error {
	r, err := os.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	for i := range 5 {
		want := fmt.Sprintf("turn %d.", i)
		if _, err := w.WriteAt([]byte(want), 0); err != nil {
			return err
		}
		for _, f := range []*os.File{r, w} {
			b := make([]byte, len(want))
			if _, err := f.ReadAt(b, 0); err != nil {
				return err
			}
			if string(b) != want {
				return fmt.Errorf("reads %q, want %q", b, want)
			}
		}
	}
	return nil
}

func temporary(dir string) error {
	made := map[string]bool{}
	for range 5 {
		f, err := os.CreateTemp(dir, "t*")
		if err != nil {
			return err
		}
		if made[f.Name()] {
			return fmt.Errorf("%s twice", f.Name())
		}
		made[f.Name()] = true
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// refusals prints what programs tell apart.
func refusals() error {
	os.WriteFile("/out/file", []byte("x"), 0o600)
	os.MkdirAll("/out/dir/sub", 0o700)
	_, missing := os.Open("/data/none")
	_, ro := os.Create("/data/new")
	_, out := os.ReadFile("/data/escape")
	_, exists := os.OpenFile("/out/file", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	_, isDir := os.OpenFile("/out/dir", os.O_WRONLY, 0)
	_, under := os.Open("/out/file/x")
	_, link := os.Readlink("/data/inside")
	_, loop := os.Open("/data/loop")
	for _, c := range []struct {
		what string
		err  error
		is   error
	}{
		{"missing", missing, fs.ErrNotExist}, {"read-only", ro, syscall.EACCES}, {"out", out, syscall.EACCES},
		{"exists", exists, fs.ErrExist}, {"directory", isDir, syscall.EISDIR}, {"under a file", under, syscall.ENOTDIR},
		{"not empty", os.Remove("/out/dir"), syscall.ENOTEMPTY}, {"mkdir", os.Mkdir("/out/dir", 0o700), fs.ErrExist},
		{"symlink", os.Symlink("/etc", "/out/l"), syscall.ENOTSUP}, {"link", os.Link("/out/file", "/out/l"), syscall.ENOTSUP},
		{"readlink", link, syscall.ENOTSUP}, {"loop", loop, syscall.ELOOP},
		{"outside", second(os.Stat("/etc/passwd")), syscall.EBADF}, {"above", second(os.Stat("/data/../../etc")), syscall.EBADF},
	} {
		if !errors.Is(c.err, c.is) {
			fmt.Printf("%s: got %v, want %v\n", c.what, c.err, c.is)
		}
	}
	fmt.Println("refused")
	return errors.Join(os.RemoveAll("/out/dir"), os.Remove("/out/file"))
}

func second[T any](_ T, err error) error { return err }

// seek reads /data/big here and there and compares with what its bytes have to
// be: every eight of them are their own offset.
func seek() error {
	f, err := os.Open("/data/big")
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	at := int64(12345)
	for i := range 500 {
		at = (at*1103515245 + 12345) & (1<<40 - 1) % (size - 4096) &^ 7
		b := make([]byte, 8*(1+i%512))
		if i%2 == 0 {
			_, err = f.ReadAt(b, at)
		} else if _, err = f.Seek(at, io.SeekStart); err == nil {
			_, err = io.ReadFull(f, b)
		}
		if err != nil {
			return err
		}
		for j := 0; j < len(b); j += 8 {
			if want := fmt.Sprintf("%07x\n", at+int64(j)); string(b[j:j+8]) != want {
				return fmt.Errorf("at %d: %q, want %q", at+int64(j), b[j:j+8], want)
			}
		}
	}
	fmt.Println("sought", size)
	return nil
}

// bench reads every file below /data/many.
func bench() error {
	list, err := os.ReadDir("/data/many")
	if err != nil {
		return err
	}
	total := 0
	for _, d := range list {
		b, err := os.ReadFile("/data/many/" + d.Name())
		if err != nil {
			return err
		}
		total += len(b)
	}
	names := slices.IsSortedFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	fmt.Println(len(list), total, names)
	return nil
}

// stream reads /data/big in steps of 4 KiB.
func stream() error {
	f, err := os.Open("/data/big")
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{f}, make([]byte, 4096))
	fmt.Println("streamed", n)
	return err
}
