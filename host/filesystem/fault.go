package filesystem

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/sluicehost/sluice/abi"
)

// A fault is a refusal as the guest receives it: two numbers, no text.
type fault struct {
	errno  abi.Errno
	detail abi.FileDetail
}

// Error implements error, for use within this package.
func (f fault) Error() string { return f.errno.String() + " " + f.detail.String() }

func refuse(e abi.Errno) error { return fault{errno: e} }

// The faults that programs distinguish.
var (
	errExists       = fault{abi.EBUSY, abi.FileExists}
	errNotEmpty     = fault{abi.EBUSY, abi.FileNotEmpty}
	errNotDirectory = fault{abi.EINVAL, abi.FileNotDirectory}
	errIsDirectory  = fault{abi.EINVAL, abi.FileIsDirectory}
	errLoop         = fault{abi.EINVAL, abi.FileLoop}
	errBadHandle    = fault{abi.EINVAL, abi.FileBadHandle}
	errMalformed    = fault{errno: abi.EPROTO}
)

// systemFaults is the error table of this boundary, first match wins. Several
// of the later ones match the earlier by errors.Is, so the order matters.
var systemFaults = []struct {
	err   error
	fault fault
}{
	{abi.ErrFilePayload, errMalformed},
	{context.Canceled, fault{errno: abi.ECANCELED}},
	{context.DeadlineExceeded, fault{errno: abi.ECANCELED}},
	{syscall.ENOTEMPTY, errNotEmpty},
	{syscall.ENOTDIR, errNotDirectory},
	{syscall.EISDIR, errIsDirectory},
	{syscall.ELOOP, errLoop},
	{syscall.ENOSPC, fault{errno: abi.ENOSPC}},
	{quotaExceeded, fault{errno: abi.ENOSPC}},
	{syscall.EFBIG, fault{errno: abi.ETOOBIG}},
	{syscall.ENAMETOOLONG, fault{errno: abi.EDENIED}},
	{syscall.EROFS, fault{errno: abi.EDENIED}},
	{syscall.EXDEV, fault{errno: abi.EDENIED}},
	{syscall.EINVAL, fault{errno: abi.EINVAL}},
	{fs.ErrNotExist, fault{errno: abi.ENOENT}},
	{fs.ErrExist, errExists},
	{fs.ErrPermission, fault{errno: abi.EDENIED}},
}

// faultOf returns what the guest learns of an error. A path that leaves the root is EDENIED
// whatever it leads to, so that a link cannot reveal what exists outside.
func (f *FS) faultOf(err error) fault {
	var own fault
	if errors.As(err, &own) {
		return own
	}
	if f.escape != nil && errors.Is(err, f.escape) {
		return fault{errno: abi.EDENIED}
	}
	for _, s := range systemFaults {
		if errors.Is(err, s.err) {
			return s.fault
		}
	}
	return fault{errno: abi.EIO}
}
