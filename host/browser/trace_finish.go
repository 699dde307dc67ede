package browser

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A TraceSummary is what there is to say of an archive.
type TraceSummary struct {
	Name    string // in the directory of archives
	Actions int
	Bytes   int64
	Digest  string // sha256:… of the file
}

// Finish writes the archive and removes its parts. It ends with ctx. The error is a
// *Fault; then there is no archive.
func (a *TraceArchive) Finish(ctx context.Context) (TraceSummary, error) {
	a.mu.Lock()
	lines := a.lines
	a.lines = nil // nothing is added from here on
	a.mu.Unlock()
	if lines == nil {
		return TraceSummary{}, &TraceFault{"trace_not_finished", errors.New("finished before")}
	}
	defer a.root.Close()
	defer func() { _ = a.root.RemoveAll(a.work) }() // Sweep takes what stays
	if err := errors.Join(a.fault, lines.Close()); err != nil {
		return TraceSummary{}, &TraceFault{"trace_not_written", err}
	}
	s := TraceSummary{Name: TraceName(a.run), Actions: a.actions}
	sum := sha256.New()
	n, err := a.pack(ctx, filepath.Join(a.work, "archive"), sum)
	if err == nil {
		err = a.root.Rename(filepath.Join(a.work, "archive"), s.Name)
	}
	if err != nil {
		return TraceSummary{}, &TraceFault{"trace_not_finished", err}
	}
	s.Bytes, s.Digest = n, "sha256:"+hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// pack writes the parts, and the page that shows them, to a file and to sum.
func (a *TraceArchive) pack(ctx context.Context, to string, sum io.Writer) (int64, error) {
	f, err := a.root.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	z := zip.NewWriter(io.MultiWriter(f, sum))
	for _, p := range append([]part{{name: "trace.jsonl"}}, a.evidence...) {
		if err := errors.Join(ctx.Err(), a.copy(z, p.name)); err != nil {
			return 0, err
		}
	}
	if err := a.index(z); err != nil {
		return 0, err
	}
	if err := errors.Join(z.Close(), f.Sync()); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (a *TraceArchive) copy(z *zip.Writer, name string) error {
	method := zip.Deflate
	if strings.HasSuffix(name, ".jpg") {
		method = zip.Store
	}
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	if err != nil {
		return err
	}
	f, err := a.root.Open(filepath.Join(a.work, name))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

//go:embed trace.html
var traceIndex string

// index is the page that steps through the archive: it needs nothing but the files
// beside it, and shows what they say as text alone.
var index = template.Must(template.New("index").Parse(traceIndex))

func (a *TraceArchive) index(z *zip.Writer) error {
	w, err := z.Create("index.html")
	if err != nil {
		return err
	}
	f, err := a.root.Open(filepath.Join(a.work, "trace.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	pictures := map[string]bool{}
	for _, p := range a.evidence {
		pictures[p.name] = true
	}
	data := struct {
		Run      string
		Lines    []string
		Pictures map[string]bool
	}{a.run, nil, pictures}
	for scanner := newScanner(f); scanner.Scan(); {
		data.Lines = append(data.Lines, scanner.Text())
	}
	return index.Execute(w, data)
}

func newScanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine+1)
	return s
}
