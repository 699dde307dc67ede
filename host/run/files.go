package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// FileQuotas bound the files that records hold, in bytes. The zero value is the default.
type FileQuotas struct {
	File       int64 // one file
	Run        int64 // what one run attaches, each file as often as it does
	Connection int64 // what is kept of a connection, each content once
}

// DefaultFileQuotas are those of a host that was not told otherwise.
func DefaultFileQuotas() FileQuotas {
	return FileQuotas{File: 256 << 20, Run: 4 << 30, Connection: 32 << 30}
}

// Bounds of files that no record holds yet. They are in memory where they are short.
const (
	maxUnheld       = 10_000
	maxUnheldMemory = 16 * abi.MiB
	maxHeldPerFlush = 200
)

// files are what the guest attached and what becomes of it. Calls are served beside the
// loop, one at a time; records are looked at in the loop.
type files struct {
	*parts
	quotas FileQuotas
	kept   store.Files // nil where the store keeps none
	fields map[string]map[string]bool

	mu     sync.Mutex // guards what follows
	open   map[uint32]*attachment
	next   uint32
	ready  map[store.Digest]*attached // and not durable in a record
	memory int                        // of these that no commit has
	unheld int                        // how many those are
	run    int64                      // bytes that the run attached
	before int64                      // bytes of the connection when they were counted, -1 before
	fresh  int64                      // bytes that became ready since, at most
	closed bool
}

// An attachment is a file that is being written.
type attachment struct {
	stream, field, name, media string
	to                         store.StagedFile
	size                       int64
	first                      []byte // for its media type
	tail                       []byte // of what was searched: a value may go on in the next part
}

// An attached file is one that records may name.
type attached struct {
	file   store.File
	staged store.StagedFile // nil once a commit has it
	memory int
	asked  bool // whether the store has it, which is known; only for recount
	known  bool
}

func newFiles(all *parts) *files {
	f := &files{
		parts: all, quotas: all.plan.Files, fields: map[string]map[string]bool{}, open: map[uint32]*attachment{},
		ready: map[store.Digest]*attached{}, before: -1,
	}
	if f.quotas == (FileQuotas{}) {
		f.quotas = DefaultFileQuotas()
	}
	f.kept, _ = store.FilesOf(all.deps.Store) // a refusal when a guest asks
	for _, s := range all.plan.scope.Streams {
		spec := all.plan.manifest.Stream(s.Name)
		for name := range spec.FileFields() {
			if f.fields[s.Name] == nil {
				f.fields[s.Name] = map[string]bool{}
			}
			f.fields[s.Name][name] = s.Fields == nil || slices.Contains(s.Fields, name) || slices.Contains(spec.Required, name)
		}
	}
	return f
}

// A fileRefusal is why a call of the guest's fails.
type fileRefusal struct {
	errno         abi.Errno
	code, message string
}

func (e *fileRefusal) Error() string { return e.message }

func refuseFile(errno abi.Errno, code, format string, args ...any) error {
	return &fileRefusal{errno, code, fmt.Sprintf(format, args...)}
}

// attach serves the calls of files. What protects values, and the bindings that are open, are
// those of the loop at its beginning.
func (f *files) attach(protected *redact.Watch, lent []binding.Binding) handler {
	return func(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
		reply, err := f.serve(ctx, call, payload, protected, lent)
		if err == nil {
			return reply, abi.OK
		}
		var refused *fileRefusal
		var fault binding.Fault
		switch {
		case errors.As(err, &refused):
			return errorText(refused.code, refused.message), refused.errno
		case errors.As(err, &fault):
			return fault.Reply()
		case errors.Is(err, store.ErrNoSpace):
			return errorText("store_no_space", "there is not enough free disk space for files; free some"), abi.ENOSPC
		case ctx.Err() != nil:
			return errorText("run_cancelled", "the run is ending"), abi.ECANCELED
		}
		return errorText("internal", "the file could not be stored"), abi.EIO
	}
}

func (f *files) serve(ctx context.Context, call abi.Call, payload []byte, protected *redact.Watch, lent []binding.Binding) ([]byte, error) {
	if f.kept == nil {
		return nil, refuseFile(abi.ENOTSUP, "files_unsupported", "%v", store.ErrNoFiles)
	}
	if call == abi.CallAttachPart {
		return f.part(payload, protected)
	}
	q, err := abi.ParseAttach(payload)
	if err != nil {
		return nil, refuseFile(abi.EINVAL, "invalid_request", "%v", err)
	}
	a, err := f.begin(ctx, q, protected)
	if err != nil {
		return nil, err
	}
	if q.From != 0 {
		var from io.ReadCloser
		if from, err = give(ctx, lent, q.From); err == nil {
			err = f.copy(ctx, a, from, protected)
		}
	} else {
		err = f.write(a, q.Content, protected)
	}
	if err != nil {
		a.to.Discard()
		return nil, err
	}
	if !q.More {
		return f.finish(a)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.open) >= abi.MaxOpenAttachments {
		a.to.Discard()
		return nil, refuseFile(abi.ETOOBIG, "too_many_handles", "at most %d files may be written at once; finish one", abi.MaxOpenAttachments)
	}
	f.next++
	f.open[f.next] = a
	return redact.Marshal(abi.AttachHandle{Handle: f.next})
}

// begin checks what may be refused before a byte is kept.
func (f *files) begin(ctx context.Context, q abi.Attach, protected *redact.Watch) (*attachment, error) {
	granted, declared := f.fields[q.Stream][q.Field]
	switch {
	case !granted && f.plan.manifest.Stream(q.Stream).FileFields()[q.Field]:
		return nil, refuseFile(abi.EDENIED, "field_not_granted", "the field %s of %s is not granted", abi.Clean(q.Field), abi.Clean(q.Stream))
	case !declared:
		return nil, refuseFile(abi.EINVAL, "invalid_request", "%s of %s holds no files: its property wants format file and type object or array",
			abi.Cut(abi.Clean(q.Field), 128), abi.Cut(abi.Clean(q.Stream), 128))
	case protected.Text(q.Name) || protected.Text(q.MediaType):
		return nil, refuseFile(abi.EDENIED, "file_withheld", "the name of a file has a secret in it")
	}
	f.mu.Lock()
	full := f.unheld >= maxUnheld || f.memory >= maxUnheldMemory
	f.mu.Unlock()
	if full {
		return nil, refuseFile(abi.ETOOBIG, "too_many_files", "%d files wait for a record that holds them; emit some", maxUnheld)
	}
	if f.before < 0 {
		if err := f.recount(ctx); err != nil {
			return nil, err
		}
	}
	to, err := f.kept.StageFile(f.ctx, f.plan.Connection.ID)
	if err != nil {
		return nil, err
	}
	return &attachment{stream: q.Stream, field: q.Field, name: fileName(q.Name), media: mediaType(q.MediaType), to: to}, nil
}

// part goes on with a file. One that is refused is gone.
func (f *files) part(payload []byte, protected *redact.Watch) ([]byte, error) {
	handle, flags, content, err := abi.ParseAttachPart(payload)
	if err != nil {
		return nil, refuseFile(abi.EINVAL, "invalid_request", "%v", err)
	}
	f.mu.Lock()
	a := f.open[handle]
	if flags != abi.AttachMore {
		delete(f.open, handle)
	}
	f.mu.Unlock()
	switch {
	case a == nil:
		return nil, refuseFile(abi.ENOENT, "unknown_handle", "there is no such handle")
	case flags == abi.AttachDrop:
		a.to.Discard()
		return nil, nil
	}
	if err := f.write(a, content, protected); err != nil {
		f.mu.Lock()
		delete(f.open, handle)
		f.mu.Unlock()
		a.to.Discard()
		return nil, err
	}
	if flags == abi.AttachLast {
		return f.finish(a)
	}
	return nil, nil
}

// copy takes the bytes of a stream handle, which the guest has no more. Sealed values in
// them are handles, as for the guest.
func (f *files) copy(ctx context.Context, a *attachment, from io.ReadCloser, protected *redact.Watch) error {
	defer from.Close()
	buf := make([]byte, 256*abi.KiB)
	for {
		n, err := io.ReadAtLeast(from, buf, 1)
		if n > 0 {
			if err := f.write(a, buf[:n], protected); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// write appends to a file, within its quotas and without a protected value.
func (f *files) write(a *attachment, b []byte, protected *redact.Watch) error {
	n := int64(len(b))
	if a.size+n > f.quotas.File {
		return refuseFile(abi.ETOOBIG, "file_too_large", "a file may have %d bytes (files.bytes)", f.quotas.File)
	}
	f.mu.Lock()
	f.run += n
	run := f.run
	f.mu.Unlock()
	if run > f.quotas.Run {
		return refuseFile(abi.ENOSPC, "file_quota", "a run may attach %d bytes (files.run_bytes)", f.quotas.Run)
	}
	var leaks bool
	if a.tail, leaks = protected.Leaks(a.tail, b); leaks {
		return refuseFile(abi.EDENIED, "file_withheld", "a file has a secret in it")
	}
	a.size += n
	if room := 512 - len(a.first); room > 0 {
		a.first = append(a.first, b[:min(room, len(b))]...)
	}
	_, err := a.to.Write(b)
	return err
}

// finish makes a file one that records may name.
func (f *files) finish(a *attachment) ([]byte, error) {
	digest, size, err := a.to.Finish()
	if err != nil {
		a.to.Discard()
		return nil, err
	}
	if a.media == "" {
		a.media = mediaType(http.DetectContentType(a.first))
	}
	file := store.File{Digest: digest, Size: size, MediaType: a.media, Name: a.name}
	if err := f.room(digest, size); err != nil {
		a.to.Discard()
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		a.to.Discard()
		return nil, refuseFile(abi.ECANCELED, "run_cancelled", "the run is ending")
	}
	if x := f.ready[digest]; x != nil && x.staged != nil {
		a.to.Discard()
		x.file = file
	} else {
		x := &attached{file: file, staged: a.to, memory: a.to.Memory()}
		f.ready[digest] = x
		f.unheld, f.memory = f.unheld+1, f.memory+x.memory
	}
	return redact.Marshal(abi.FileRef{Digest: string(digest), Size: size, MediaType: file.MediaType, Name: file.Name})
}

// room refuses a content beyond the quota of the connection. The store is asked only where
// that could be: until then every content counts as new.
func (f *files) room(d store.Digest, size int64) error {
	if f.counts(d, size) {
		return nil
	}
	_, err := f.kept.HasFile(f.ctx, f.plan.Connection.ID, d)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := f.recount(f.ctx); err != nil {
		return err
	}
	if !f.counts(d, size) {
		return refuseFile(abi.ENOSPC, "file_quota", "files of a connection may take %d bytes (files.connection_bytes)", f.quotas.Connection)
	}
	return nil
}

// counts adds a content that is not ready yet, unless there may be no room for it.
func (f *files) counts(d store.Digest, size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ready[d] != nil {
		return true
	}
	if f.before+f.fresh+size > f.quotas.Connection {
		return false
	}
	f.fresh += size
	return true
}

// recount asks the store what it keeps of the connection, and which of the contents that are
// ready it has already: of each once, until a commit takes it.
func (f *files) recount(ctx context.Context) error {
	f.mu.Lock()
	ready := maps.Clone(f.ready)
	f.mu.Unlock()
	fresh := int64(0)
	for d, x := range ready {
		if !x.asked {
			_, err := f.kept.HasFile(ctx, f.plan.Connection.ID, d)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			x.asked, x.known = true, err == nil
		}
		if !x.known {
			fresh += x.file.Size
		}
	}
	u, err := f.kept.FileUsage(ctx, f.plan.Connection.ID)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.fresh = int64(u.Bytes), fresh
	return nil
}

// holding are the files of a record.
type holding struct {
	held   []store.Held
	staged []*attached // that no commit has
}

// resolve checks the references of a record and writes what they stand for into it.
func (f *files) resolve(fields map[string]bool, m *abi.RecordMessage) (h holding, bad *Rejection) {
	if !slices.ContainsFunc(m.Members, func(x member) bool { return fields[string(x.Name)] }) {
		return h, nil
	}
	data := make([]byte, 0, len(m.Data)+256)
	for i, x := range m.Members {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		data = append(appendQuoted(append(data, sep), x.Name), ':')
		if !fields[string(x.Name)] {
			data = append(data, x.Value...)
			continue
		}
		if data, bad = f.field(data, x, &h); bad != nil {
			return holding{}, bad
		}
	}
	m.Data = append(data, '}')
	return h, nil
}

// forget discards what no record holds.
func (f *files) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, a := range f.open {
		a.to.Discard()
	}
	for _, x := range f.ready {
		if x.staged != nil {
			x.staged.Discard()
		}
	}
	f.open, f.ready = nil, nil
}

// taken hands the contents of files to a commit.
func (f *files) taken(list []*attached) (staged []store.StagedFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range list {
		if x.staged != nil { // two records of the batch may hold it
			staged = append(staged, x.staged)
			f.unheld, f.memory = f.unheld-1, f.memory-x.memory
			x.staged = nil
		}
	}
	return staged
}

// durable drops what the store knows from now on.
func (f *files) durable(list []*attached) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range list {
		if f.ready[x.file.Digest] == x {
			delete(f.ready, x.file.Digest)
		}
	}
}

// reference is one file as a record names it.
func (f *files) reference(value member, h *holding, field string) (store.File, *Rejection) {
	wrong := &Rejection{Code: rejectFile, Field: field}
	v := value.Tree()
	text := func(name string) string {
		m, _ := v.Member(name)
		t, _ := m.Text()
		return t
	}
	d, err := store.ParseDigest(text("digest"))
	if err != nil {
		return store.File{}, wrong
	}
	f.mu.Lock()
	x := f.ready[d]
	f.mu.Unlock()
	var file store.File
	switch {
	case x != nil:
		file = x.file
		if x.staged != nil {
			h.staged = append(h.staged, x)
		}
	case f.kept != nil:
		if file, err = f.kept.HasFile(f.ctx, f.plan.Connection.ID, d); err != nil {
			return store.File{}, &Rejection{Code: rejectUnknownFile, Field: field}
		}
	default:
		return store.File{}, &Rejection{Code: rejectUnknownFile, Field: field}
	}
	if name := fileName(text("name")); name != "" {
		file.Name = name
	}
	if media := mediaType(text("media_type")); media != "" {
		file.MediaType = media
	}
	return file, nil
}

// fileName is a last path element of at most 255 bytes, without control characters; "" for
// none.
func fileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, "\\", "/"))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '/' || r == utf8.RuneError || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '_'
		}
		return r
	}, name)
	name = abi.Cut(name, abi.MaxFileName)
	if strings.Trim(name, ". ") == "" {
		return ""
	}
	return name
}

// mediaType is type/subtype in lower case, without parameters; "" for what is none.
func mediaType(text string) string {
	kind, _, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || len(kind) > abi.MaxMediaType || strings.Count(kind, "/") != 1 {
		return ""
	}
	return kind
}

// fileJSON is a file as it stands in a record.
func fileJSON(file store.File) []byte {
	b, _ := json.Marshal(file) // texts and a number
	return b
}
