package abi

import "fmt"

// An Errno is what a call of a sluice_v1 module returns, negated, when it
// fails (G6). The numbers are part of the contract: the list is append-only.
type Errno uint16

const (
	OK        Errno = 0
	EPROTO    Errno = 1  // the run was ended for a protocol violation; exit
	EINVAL    Errno = 2  // malformed request of a function that is no message
	EFAULT    Errno = 3  // pointer outside of memory
	ETOOBIG   Errno = 4  // over a limit that the text names
	EDENIED   Errno = 5  // not granted
	ENOTSUP   Errno = 6  // unknown verb, or not in this minor version
	ECANCELED Errno = 7  // the run is being cancelled; send done and exit
	ETIMEOUT  Errno = 8  // the named limit passed
	EUNAVAIL  Errno = 9  // granted, not reachable now
	ERATE     Errno = 10 // a rate governor would wait longer than allowed
	EIO       Errno = 11 // the host failed
	ENOENT    Errno = 12 // no such handle, file or element
	EBUSY     Errno = 13 // in use, or the owner holds control
	ENOSPC    Errno = 14 // a quota or the disk is full
)

var errnoNames = [...]string{
	OK: "OK", EPROTO: "EPROTO", EINVAL: "EINVAL", EFAULT: "EFAULT", ETOOBIG: "ETOOBIG",
	EDENIED: "EDENIED", ENOTSUP: "ENOTSUP", ECANCELED: "ECANCELED", ETIMEOUT: "ETIMEOUT",
	EUNAVAIL: "EUNAVAIL", ERATE: "ERATE", EIO: "EIO", ENOENT: "ENOENT", EBUSY: "EBUSY", ENOSPC: "ENOSPC",
}

// String returns the name used in error texts, such as "EDENIED".
func (e Errno) String() string {
	if int(e) < len(errnoNames) {
		return errnoNames[e]
	}
	return fmt.Sprintf("errno(%d)", uint16(e))
}

// Error makes a non-zero Errno usable as a Go error in hosts and guests.
func (e Errno) Error() string { return "sluice: " + e.String() }

// Known reports whether e is a number of this version of the contract.
func (e Errno) Known() bool { return int(e) < len(errnoNames) }
