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

// FileQuotas limit the files that records hold, in bytes. The zero value means the default.
type FileQuotas struct {
	File       int64 // one file
	Run        int64 // all files that one run attaches, repeated ones included
	Connection int64 // all files that are kept of a connection, each content once
}

// DefaultFileQuotas returns the default quotas.
func DefaultFileQuotas() FileQuotas {
	return FileQuotas{File: 256 << 20, Run: 4 << 30, Connection: 32 << 30}
}

// Limits of attached files that no record holds yet, and of files held by the records of one flush.
const (
	maxUnheld       = 10_000
	maxUnheldMemory = 16 * abi.MiB
	maxHeldPerFlush = 200
)

// files are the files that the guest attached. Calls are handled outside of the loop, one at a time; records are
// checked in the loop.
type files struct {
	*parts
	quotas FileQuotas
	store  store.Files // nil if the store keeps no files
	fields map[string]map[string]bool

	mu                sync.Mutex // guards what follows
	open              map[uint32]*attachment
	next              uint32
	ready             map[store.Digest]*attached // attached, but not durable in a record yet
	memory            int                        // bytes in memory of those that no commit has
	unheld            int                        // number of those
	runBytes          int64                      // bytes that the run attached
	connectionBytes   int64                      // bytes of the connection at the last recount, -1 before the first
	bytesSinceRecount int64                      // upper bound of bytes that became ready since
	closed            bool
}

// An attachment is a file that is being written.
type attachment struct {
	stream, field, name, media string
	staged                     store.StagedFile
	size                       int64
	head                       []byte // used to detect its media type
	tail                       []byte // end of what was searched, since a secret may continue in the next part
}

// An attached is a complete file that records may refer to.
type attached struct {
	file   store.File
	staged store.StagedFile // nil once a commit has it
	memory int
	asked  bool // known is valid; for recount only
	known  bool
}

func newFiles(all *parts) *files {
	f := &files{
		parts: all, quotas: all.plan.Files, fields: map[string]map[string]bool{}, open: map[uint32]*attachment{},
		ready: map[store.Digest]*attached{}, connectionBytes: -1,
	}
	if f.quotas == (FileQuotas{}) {
		f.quotas = DefaultFileQuotas()
	}
	f.store, _ = store.FilesOf(all.deps.Store) // nil means a refusal when the guest attaches
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

// A fileRefusal is the error that a guest gets for a call.
type fileRefusal struct {
	errno         abi.Errno
	code, message string
}

func (e *fileRefusal) Error() string { return e.message }

func refuseFile(errno abi.Errno, code, format string, args ...any) error {
	return &fileRefusal{errno, code, fmt.Sprintf(format, args...)}
}

// attach returns the handler of file calls. protected and lent are the protected values and open bindings at the
// time of the call.
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

func (f *files) serve(ctx context.Context, call abi.Call, payload []byte, protected *redact.Watch,
	lent []binding.Binding) ([]byte, error) {
	if f.store == nil {
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
		if from, err = takeBody(ctx, lent, q.From); err == nil {
			err = f.copy(ctx, a, from, protected)
		}
	} else {
		err = f.write(a, q.Content, protected)
	}
	if err != nil {
		a.staged.Discard()
		return nil, err
	}
	if !q.More {
		return f.finish(a)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.open) >= abi.MaxOpenAttachments {
		a.staged.Discard()
		return nil, refuseFile(abi.ETOOBIG, "too_many_handles", "at most %d files may be written at once; finish one",
			abi.MaxOpenAttachments)
	}
	f.next++
	f.open[f.next] = a
	return redact.Marshal(abi.AttachHandle{Handle: f.next})
}

// begin makes all checks that are possible before any content is stored.
func (f *files) begin(ctx context.Context, q abi.Attach, protected *redact.Watch) (*attachment, error) {
	granted, declared := f.fields[q.Stream][q.Field]
	switch {
	case !granted && f.plan.manifest.Stream(q.Stream).FileFields()[q.Field]:
		return nil, refuseFile(abi.EDENIED, "field_not_granted", "the field %s of %s is not granted", abi.Clean(q.Field),
			abi.Clean(q.Stream))
	case !declared:
		return nil, refuseFile(abi.EINVAL, "invalid_request",
			"%s of %s holds no files: its property wants format file and type object or array",
			abi.Cut(abi.Clean(q.Field), 128), abi.Cut(abi.Clean(q.Stream), 128))
	case protected.Text(q.Name) || protected.Text(q.MediaType):
		return nil, refuseFile(abi.EDENIED, "file_withheld", "the name of a file has a secret in it")
	}
	f.mu.Lock()
	full := f.unheld >= maxUnheld || f.memory >= maxUnheldMemory
	f.mu.Unlock()
	if full {
		return nil, refuseFile(abi.ETOOBIG, "too_many_files", "%d files wait for a record that holds them; emit some",
			maxUnheld)
	}
	if f.connectionBytes < 0 {
		if err := f.recount(ctx); err != nil {
			return nil, err
		}
	}
	to, err := f.store.StageFile(f.ctx, f.plan.Connection.ID)
	if err != nil {
		return nil, err
	}
	return &attachment{stream: q.Stream, field: q.Field, name: fileName(q.Name),
		media: mediaType(q.MediaType), staged: to}, nil
}

// part appends to a file. A file whose part is refused is discarded.
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
		a.staged.Discard()
		return nil, nil
	}
	if err := f.write(a, content, protected); err != nil {
		f.mu.Lock()
		delete(f.open, handle)
		f.mu.Unlock()
		a.staged.Discard()
		return nil, err
	}
	if flags == abi.AttachLast {
		return f.finish(a)
	}
	return nil, nil
}

// copy appends the content of a stream handle, which the guest loses. Sealed values in it are handles, as the
// guest would see them.
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

// write appends to a file, and checks quotas and protected values.
func (f *files) write(a *attachment, b []byte, protected *redact.Watch) error {
	n := int64(len(b))
	if a.size+n > f.quotas.File {
		return refuseFile(abi.ETOOBIG, "file_too_large", "a file may have %d bytes (files.bytes)", f.quotas.File)
	}
	f.mu.Lock()
	f.runBytes += n
	run := f.runBytes
	f.mu.Unlock()
	if run > f.quotas.Run {
		return refuseFile(abi.ENOSPC, "file_quota", "a run may attach %d bytes (files.run_bytes)", f.quotas.Run)
	}
	var leaks bool
	if a.tail, leaks = protected.Leaks(a.tail, b); leaks {
		return refuseFile(abi.EDENIED, "file_withheld", "a file has a secret in it")
	}
	a.size += n
	if room := 512 - len(a.head); room > 0 {
		a.head = append(a.head, b[:min(room, len(b))]...)
	}
	_, err := a.staged.Write(b)
	return err
}

// finish completes a file, so that records may refer to it.
func (f *files) finish(a *attachment) ([]byte, error) {
	digest, size, err := a.staged.Finish()
	if err != nil {
		a.staged.Discard()
		return nil, err
	}
	if a.media == "" {
		a.media = mediaType(http.DetectContentType(a.head))
	}
	file := store.File{Digest: digest, Size: size, MediaType: a.media, Name: a.name}
	if err := f.checkQuota(digest, size); err != nil {
		a.staged.Discard()
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		a.staged.Discard()
		return nil, refuseFile(abi.ECANCELED, "run_cancelled", "the run is ending")
	}
	if x := f.ready[digest]; x != nil && x.staged != nil {
		a.staged.Discard()
		x.file = file
	} else {
		x := &attached{file: file, staged: a.staged, memory: a.staged.Memory()}
		f.ready[digest] = x
		f.unheld, f.memory = f.unheld+1, f.memory+x.memory
	}
	return redact.Marshal(abi.FileRef{Digest: string(digest), Size: size, MediaType: file.MediaType, Name: file.Name})
}

// checkQuota refuses content above the quota of the connection. It assumes that all content is new, and asks the store
// only if the quota could be exceeded.
func (f *files) checkQuota(d store.Digest, size int64) error {
	if f.addUsage(d, size) {
		return nil
	}
	_, err := f.store.HasFile(f.ctx, f.plan.Connection.ID, d)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := f.recount(f.ctx); err != nil {
		return err
	}
	if !f.addUsage(d, size) {
		return refuseFile(abi.ENOSPC, "file_quota", "files of a connection may take %d bytes (files.connection_bytes)",
			f.quotas.Connection)
	}
	return nil
}

// addUsage adds content to the usage. It reports false if the quota might be exceeded.
func (f *files) addUsage(d store.Digest, size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ready[d] != nil {
		return true
	}
	if f.connectionBytes+f.bytesSinceRecount+size > f.quotas.Connection {
		return false
	}
	f.bytesSinceRecount += size
	return true
}

// recount asks the store for the usage of the connection, and which of the attached contents it has already,
// each of them once.
func (f *files) recount(ctx context.Context) error {
	f.mu.Lock()
	ready := maps.Clone(f.ready)
	f.mu.Unlock()
	fresh := int64(0)
	for d, x := range ready {
		if !x.asked {
			_, err := f.store.HasFile(ctx, f.plan.Connection.ID, d)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			x.asked, x.known = true, err == nil
		}
		if !x.known {
			fresh += x.file.Size
		}
	}
	u, err := f.store.FileUsage(ctx, f.plan.Connection.ID)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connectionBytes, f.bytesSinceRecount = int64(u.Bytes), fresh
	return nil
}

// heldFiles are the files of a record.
type heldFiles struct {
	held   []store.Held
	staged []*attached // contents that no commit has
}

// resolve checks the file references of a record and replaces them by the stored form.
func (f *files) resolve(fields map[string]bool, m *abi.RecordMessage) (h heldFiles, bad *Rejection) {
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
			return heldFiles{}, bad
		}
	}
	m.Data = append(data, '}')
	return h, nil
}

// discardUnheld discards the files that no record holds.
func (f *files) discardUnheld() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, a := range f.open {
		a.staged.Discard()
	}
	for _, x := range f.ready {
		if x.staged != nil {
			x.staged.Discard()
		}
	}
	f.open, f.ready = nil, nil
}

// takeStaged removes the contents of files that no commit has yet, and returns them for a commit.
func (f *files) takeStaged(list []*attached) (staged []store.StagedFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range list {
		if x.staged != nil { // two records of the batch may hold the file
			staged = append(staged, x.staged)
			f.unheld, f.memory = f.unheld-1, f.memory-x.memory
			x.staged = nil
		}
	}
	return staged
}

// forgetDurable forgets files that are durable in the store.
func (f *files) forgetDurable(list []*attached) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range list {
		if f.ready[x.file.Digest] == x {
			delete(f.ready, x.file.Digest)
		}
	}
}

// reference returns the file that a record refers to.
func (f *files) reference(value member, h *heldFiles, field string) (store.File, *Rejection) {
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
	case f.store != nil:
		if file, err = f.store.HasFile(f.ctx, f.plan.Connection.ID, d); err != nil {
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

// fileName returns the last element of a path, without control characters and cut to abi.MaxFileName bytes; ""
// if nothing is left.
func fileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, "\\", "/"))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '/' || r == utf8.RuneError || r >= 0x202a && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069 {
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

// mediaType returns type/subtype in lower case without parameters, "" if text is invalid.
func mediaType(text string) string {
	kind, _, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || len(kind) > abi.MaxMediaType ||
		strings.Count(kind, "/") != 1 {
		return ""
	}
	return kind
}

// fileJSON returns the form of a file in a stored record.
func fileJSON(file store.File) []byte {
	b, _ := json.Marshal(file) // it has only texts and a number
	return b
}
