package filesystem

import (
	"context"
	"os"

	"github.com/sluicehost/sluice/abi"
)

// A handle is an open file or directory. It refers to the file itself, even if that is
// renamed or removed.
type handle struct {
	mount *mount
	file  *os.File
	id    identity
	flags abi.FileFlags
}

func (h *handle) dir() bool { return h.id.kind.IsDir() }

// Handle serves one file call. On success the reply is as described in abi/file.go; on
// failure it is empty or one byte of abi.FileDetail. It is valid until the next call.
//
// EPROTO means that the worker does not keep to the protocol, and the caller ends it. After
// ctx is done every call fails with ECANCELED.
func (f *FS) Handle(ctx context.Context, call abi.Call, req []byte) (reply []byte, errno abi.Errno) {
	reply, err := f.serve(ctx, call, req)
	if err == nil {
		return reply, abi.OK
	}
	failed := f.faultOf(err)
	if failed.detail == abi.FileDetailNone {
		return nil, failed.errno
	}
	return []byte{byte(failed.detail)}, failed.errno
}

func (f *FS) serve(ctx context.Context, call abi.Call, req []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch call {
	case abi.CallFileOpen:
		return parsed(req, abi.ParseFileOpenRequest, func(q abi.FileOpenRequest) ([]byte, error) { return f.open(ctx, q) })
	case abi.CallFileRead:
		return parsed(req, abi.ParseFileReadRequest, func(q abi.FileReadRequest) ([]byte, error) { return f.read(ctx, q) })
	case abi.CallFileWrite:
		return parsed(req, abi.ParseFileWriteRequest, f.write)
	case abi.CallFileClose:
		return parsed(req, abi.ParseFileHandleRequest, f.close)
	case abi.CallFileStat:
		return parsed(req, abi.ParseFileStatRequest, f.stat)
	case abi.CallFileLstat:
		return parsed(req, abi.ParseFilePathRequest, f.lstat)
	case abi.CallFileReadDir:
		return parsed(req, abi.ParseFileReadDirRequest,
			func(q abi.FileReadDirRequest) ([]byte, error) { return f.readDir(ctx, q) })
	case abi.CallFileMkdir:
		return parsed(req, abi.ParseFilePathRequest, f.mkdir)
	case abi.CallFileUnlink:
		return parsed(req, abi.ParseFilePathRequest, f.unlink)
	case abi.CallFileRmdir:
		return parsed(req, abi.ParseFilePathRequest, f.rmdir)
	case abi.CallFileRename:
		return parsed(req, abi.ParseFileRenameRequest,
			func(q abi.FileRenameRequest) ([]byte, error) { return f.rename(ctx, q) })
	case abi.CallFileTruncate:
		return parsed(req, abi.ParseFileTruncateRequest, f.truncate)
	case abi.CallFileSync:
		return parsed(req, abi.ParseFileHandleRequest, f.sync)
	case abi.CallFileTimes:
		return parsed(req, abi.ParseFileTimesRequest, f.times)
	default:
		return nil, refuse(abi.EPROTO)
	}
}

// parsed calls do with the parsed request.
func parsed[Q any](req []byte, parse func([]byte) (Q, error), do func(Q) ([]byte, error)) ([]byte, error) {
	q, err := parse(req)
	if err != nil {
		return nil, err
	}
	return do(q)
}

// take assigns a number to an open file.
func (f *FS) take(h *handle) uint32 {
	for {
		f.last++
		if _, used := f.handles[f.last]; !used && f.last != 0 {
			f.handles[f.last] = h
			return f.last
		}
	}
}

// get returns a handle that has at least one of flags, or any handle if flags is 0.
func (f *FS) get(n uint32, flags abi.FileFlags) (*handle, error) {
	h := f.handles[n]
	if h == nil || flags != 0 && h.flags&flags == 0 {
		return nil, errBadHandle
	}
	if flags != 0 && h.dir() {
		return nil, errIsDirectory
	}
	return h, nil
}

// holds reports whether a handle of a file is open.
func (f *FS) holds(id identity) bool {
	for _, h := range f.handles {
		if h.id == id {
			return true
		}
	}
	return false
}

func (f *FS) close(q abi.FileHandleRequest) ([]byte, error) {
	if _, err := f.get(q.Handle, 0); err != nil {
		return nil, err
	}
	return nil, f.drop(q.Handle)
}

// drop closes a handle and updates the ledger.
func (f *FS) drop(n uint32) error {
	h := f.handles[n]
	delete(f.handles, n)
	err := h.file.Close()
	if h.mount.ledger != nil && !f.holds(h.id) {
		h.mount.ledger.closed(h.id)
	}
	return err
}

// reply returns the reply buffer, empty, with room for n bytes.
func (f *FS) reply(n int) []byte {
	if least := max(n, abi.KiB); cap(f.buf) < least {
		f.buf = make([]byte, 0, least)
	}
	return f.buf[:0]
}
