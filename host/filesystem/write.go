package filesystem

import (
	"errors"
	"io/fs"
	"math"

	"github.com/sluicehost/sluice/abi"
)

func (f *FS) write(q abi.FileWriteRequest) ([]byte, error) {
	h, err := f.get(q.Handle, abi.FileWrite)
	if err != nil {
		return nil, err
	}
	fi, err := h.file.Stat()
	if err != nil {
		return nil, err
	}
	at := q.Offset
	if q.AtEnd {
		at = fi.Size()
	}
	if at > math.MaxInt64-int64(len(q.Data)) {
		return nil, refuse(abi.ETOOBIG)
	}
	if len(q.Data) == 0 {
		return abi.FileWriteReply{Size: fi.Size()}.Append(f.reply(0)), nil
	}
	if err := h.mount.ledger.roomFor(fi, at+int64(len(q.Data))); err != nil {
		return nil, err
	}
	n, err := h.file.WriteAt(q.Data, at)
	after, statErr := h.weigh(fi)
	if n == 0 {
		return nil, errors.Join(err, statErr)
	}
	if statErr != nil {
		return nil, statErr
	}
	return abi.FileWriteReply{Count: uint32(n), Size: after.Size()}.Append(f.reply(0)), nil
}

// weigh records in the ledger how a file's weight changed since before.
func (h *handle) weigh(before fs.FileInfo) (fs.FileInfo, error) {
	after, err := h.file.Stat()
	if err != nil {
		return nil, err
	}
	h.mount.ledger.grew(after, weight(after)-weight(before))
	return after, nil
}

func (f *FS) truncate(q abi.FileTruncateRequest) ([]byte, error) {
	h, err := f.get(q.Handle, abi.FileWrite)
	if err != nil {
		return nil, err
	}
	_, err = h.resize(q.Size)
	return nil, err
}

// resize sets the size of a file and returns its new state.
func (h *handle) resize(size int64) (fs.FileInfo, error) {
	fi, err := h.file.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() == size {
		return fi, nil
	}
	if err := h.mount.ledger.roomFor(fi, size); err != nil {
		return nil, err
	}
	if err := h.file.Truncate(size); err != nil {
		return nil, err
	}
	return h.weigh(fi)
}

func (f *FS) sync(q abi.FileHandleRequest) ([]byte, error) {
	h, err := f.get(q.Handle, 0)
	if err != nil {
		return nil, err
	}
	if h.mount.Writable {
		return nil, h.file.Sync()
	}
	return nil, nil
}
