//go:build !wasip1

package guesttest

import (
	"errors"
	"io"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// handles are the streams that the guest has open (G10).
type handles struct {
	readers map[int32]io.Reader
	last    int32
}

func (h *handles) open(r io.Reader) (int32, error) {
	if len(h.readers) >= abi.MaxHandles {
		return 0, guest.NewError(abi.ETOOBIG, "too_many_handles", "64 handles are open: close some")
	}
	if h.readers == nil {
		h.readers = map[int32]io.Reader{}
	}
	h.last++
	h.readers[h.last] = r
	return h.last, nil
}

// Read is the read function.
func (h *host) Read(handle int32, dst []byte) (int, error) {
	if err := h.refused(abi.CallRead); err != nil {
		return 0, err
	}
	r, ok := h.handles.readers[handle]
	if !ok {
		return 0, guest.NewError(abi.ENOENT, "no_such_handle", "")
	}
	n, err := r.Read(dst)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, guest.NewError(abi.EIO, "read", err.Error())
	}
	return n, nil
}

// Close is the close function.
func (h *host) Close(handle int32) error {
	if _, ok := h.handles.readers[handle]; !ok {
		return guest.NewError(abi.ENOENT, "no_such_handle", "")
	}
	delete(h.handles.readers, handle)
	return nil
}
