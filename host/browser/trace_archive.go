package browser

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/engine"
)

// Bounds of one archive. Evidence means pictures and snapshots, of which the oldest are dropped;
// lines are always kept, up to their own bound.
const (
	MaxTraceEvidence = 50 * abi.MiB
	maxLines         = 16 * abi.MiB
	maxLine          = 256 * abi.KiB
	maxPicture       = 4 * abi.MiB
	maxLabel         = 80
)

// A TraceFault says why there is no archive.
type TraceFault struct {
	Code string // trace_not_started, trace_not_written or trace_not_finished
	Err  error  // for the host's log
}

func (f *TraceFault) Error() string { return f.Code }

// Unwrap returns the cause.
func (f *TraceFault) Unwrap() error { return f.Err }

// A TraceArchive is an archive being written. It is safe for concurrent use. Failures after
// BeginTrace are reported by Finish.
type TraceArchive struct {
	run  string
	root *os.Root // directory of all archives
	work string   // directory of this archive's parts, in root

	mu       sync.Mutex // guards what follows
	lines    *os.File
	size     int64 // of lines
	actions  int
	evidence []part // oldest first
	held     int64
	fault    error
}

// A part is a file of evidence.
type part struct {
	name string
	size int64
}

// BeginTrace starts the archive of a run in a directory, which is created if necessary. The error
// is a *TraceFault.
func BeginTrace(dir, run string) (*TraceArchive, error) {
	if !isRun(run) {
		return nil, &TraceFault{"trace_not_started", fmt.Errorf("run id %.80q", run)}
	}
	a := &TraceArchive{run: run, work: unfinished + run}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		a.root, err = os.OpenRoot(dir)
	}
	if err == nil {
		err = a.root.Mkdir(a.work, 0o700)
	}
	if err == nil {
		a.lines, err = a.root.Create(filepath.Join(a.work, "trace.jsonl"))
	}
	if err != nil {
		if a.root != nil {
			_ = a.root.Close()
		}
		return nil, &TraceFault{"trace_not_started", err}
	}
	return a, nil
}

// unfinished is the prefix of directories of archives that are not finished.
const unfinished = ".unfinished-"

// SweepTraces removes unfinished archives of an earlier host.
func SweepTraces(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// TraceName returns the file name of a run's archive.
func TraceName(run string) string { return before + run + ending }

// A line is a line of trace.jsonl.
type line struct {
	Kind string `json:"kind"` // trace, signal, navigation, dialog, denial, event
	Verb string `json:"verb,omitempty"`
	Data any    `json:"data"`
}

// Action adds the trace of a verb.
func (a *TraceArchive) Action(verb engine.Verb, t engine.Trace) { a.add("trace", string(verb), t) }

// Note adds another event: a signal, a navigation, a dialog, a denial or an event of the surface.
func (a *TraceArchive) Note(kind string, data any) { a.add(kind, "", data) }

func (a *TraceArchive) add(kind, verb string, data any) {
	text, err := clean(line{kind, verb, data})
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.fault != nil || a.lines == nil:
		return
	case err == nil && (len(text) > maxLine || a.size+int64(len(text)) > maxLines):
		err = errors.New("the trace is too long")
	}
	if err == nil {
		_, err = a.lines.Write(append(text, '\n'))
	}
	if a.fault = err; err != nil {
		return
	}
	a.size += int64(len(text)) + 1
	if kind == "trace" {
		a.actions++
	}
}

// clean returns JSON in which text of a guest or a page is safe to show.
func clean(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return abi.CleanJSON(text)
}

// Picture adds a JPEG of the page after a verb. The caller has painted over secrets.
func (a *TraceArchive) Picture(actionID string, jpeg []byte) { a.keep(actionID+".jpg", jpeg) }

// Snapshot adds the elements of the page after a verb: roles, labels of at most 80 bytes and
// positions, without values and texts.
func (a *TraceArchive) Snapshot(actionID string, elements []engine.Element) {
	redacted := make([]engine.Element, len(elements))
	for i, e := range elements {
		e.State, e.Selector, e.Text, e.Label = nil, nil, "", abi.Cut(e.Label, maxLabel)
		redacted[i] = e
	}
	if text, err := clean(redacted); err == nil {
		a.keep(actionID+".json", text)
	}
}

// keep writes a piece of evidence, dropping the oldest to make room.
func (a *TraceArchive) keep(name string, content []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lines == nil || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || len(content) > maxPicture {
		return
	}
	for a.held+int64(len(content)) > MaxTraceEvidence && len(a.evidence) > 0 {
		oldest := a.evidence[0]
		a.evidence = a.evidence[1:]
		a.held -= oldest.size
		_ = a.root.Remove(filepath.Join(a.work, oldest.name)) // removed with the directory otherwise
	}
	if err := a.root.WriteFile(filepath.Join(a.work, name), content, 0o600); err != nil {
		return // evidence is best effort
	}
	a.evidence = append(a.evidence, part{name, int64(len(content))})
	a.held += int64(len(content))
}

// A TraceSummary describes a finished archive.
type TraceSummary struct {
	Name    string // file name in the directory of archives
	Actions int
	Bytes   int64
	Digest  string // sha256:… of the file
}

// Finish writes the archive and removes its parts. It ends with ctx. The error is a *TraceFault,
// and then there is no archive.
func (a *TraceArchive) Finish(ctx context.Context) (TraceSummary, error) {
	a.mu.Lock()
	lines := a.lines
	a.lines = nil // nothing is added from here on
	a.mu.Unlock()
	if lines == nil {
		return TraceSummary{}, &TraceFault{"trace_not_finished", errors.New("finished before")}
	}
	defer a.root.Close()
	defer func() { _ = a.root.RemoveAll(a.work) }() // SweepTraces removes what is left
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

// pack writes the parts and the page that shows them to a file and to sum.
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

// index is the page that steps through the archive. It needs only the files beside it and shows
// their content as plain text.
var index = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("index").Parse(traceIndex))
})

func (a *TraceArchive) index(z *zip.Writer) error {
	w, err := z.Create("index.html")
	if err != nil {
		return err
	}
	text, err := a.root.ReadFile(filepath.Join(a.work, "trace.jsonl"))
	if err != nil {
		return err
	}
	pictures := map[string]bool{}
	for _, p := range a.evidence {
		pictures[p.name] = true
	}
	data := struct {
		Run      string
		Lines    []string
		Pictures map[string]bool
	}{a.run, nil, pictures}
	for line := range strings.Lines(string(text)) {
		data.Lines = append(data.Lines, strings.TrimSuffix(line, "\n"))
	}
	return index().Execute(w, data)
}

// Prefix and suffix of archive names.
const (
	before = "browser-trace-"
	ending = ".zip"
)

// OpenTrace opens the archive of a run. It returns fs.ErrNotExist if there is none.
func OpenTrace(dir, run string) (*os.File, error) {
	if !isRun(run) {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if fi, err := root.Lstat(TraceName(run)); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	return root.Open(TraceName(run))
}

// StatTrace returns information about the archive of a run, or fs.ErrNotExist if there is none.
func StatTrace(dir, run string) (fs.FileInfo, error) {
	if !isRun(run) {
		return nil, fs.ErrNotExist
	}
	fi, err := os.Lstat(filepath.Join(dir, TraceName(run)))
	if err == nil && !fi.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	return fi, err
}

// RemoveTrace removes the archive of a run, if there is one.
func RemoveTrace(dir, run string) error {
	if !isRun(run) {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, TraceName(run))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// TracedRuns yields the runs that have an archive, in no particular order. A missing directory has
// none.
func TracedRuns(dir string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", err)
			return
		}
		for _, e := range entries {
			run, ok := strings.CutPrefix(e.Name(), before)
			run, zip := strings.CutSuffix(run, ending)
			if ok && zip && isRun(run) && !yield(run, nil) {
				return
			}
		}
	}
}

// isRun reports whether a run id can be part of a file name.
func isRun(run string) bool { return filepath.IsLocal(run) && !strings.ContainsAny(run, `/\`) }
