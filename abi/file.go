package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The file calls (CallFile…) carry WASI's file operations from the worker to the host.
// Payloads are little-endian binary, because most of their volume is listings and blocks of
// data. Every Append… has one Parse… that accepts exactly what it writes: no trailing
// bytes, no unknown flag, no number out of range.
//
//	call       request                                        reply
//	Open       mount u32 | flags u16 | ahead u32 | path       handle u32 | stat | content
//	Read       handle u32 | offset u64 | length u32           the bytes; none at the end
//	Write      handle u32 | append u8 | offset u64 | bytes    count u32 | size u64
//	Close      handle u32                                     -
//	Stat       mount u32 | handle u32 | path                  stat
//	Lstat      mount u32 | path                               stat
//	ReadDir    handle u32 | rewind u8                         end u8 | entries
//	Mkdir      mount u32 | path                               -
//	Unlink     mount u32 | path                               -
//	Rmdir      mount u32 | path                               -
//	Rename     mount u32 | length u16 | from | to             -
//	Truncate   handle u32 | size u64                          -
//	Sync       handle u32                                     -
//	Times      mount u32 | set u8 | atime i64 | mtime i64 | path   -
//
//	stat       kind u8 | inode u64 | links u32 | size u64 | mtime i64 | ctime i64
//	entry      kind u8 | inode u64 | length u16 | name
//
// Times are nanoseconds since 1970. A call that fails answers with an Errno
// and, where programs depend on a finer reason, one byte of FileDetail.

// ErrFilePayload is wrapped by every error of a parser of file payloads.
var ErrFilePayload = errors.New("malformed file payload")

// Bounds of the file calls, not configurable.
const (
	MaxFilePath       = 4 * KiB
	MaxFileComponents = 64
	MaxFileName       = 255
	MaxFileChunk      = MiB // bytes of one read or write
	MaxFileEntries    = 1_000
	MaxFileHandles    = MaxHandles
	FileBlock         = 64 * KiB // minimum read-ahead

	// maxFileWirePath is the longest path that the wire can carry. The host enforces the
	// shorter limits and answers with an errno, so that a long path does not end the
	// worker.
	maxFileWirePath = 1<<16 - 1
)

// A FileDetail refines the Errno of a file call for programs that distinguish, for example,
// "exists" from "is a directory".
type FileDetail uint8

const (
	FileDetailNone   FileDetail = 0
	FileExists       FileDetail = 1 // with EBUSY
	FileNotEmpty     FileDetail = 2 // with EBUSY
	FileNotDirectory FileDetail = 3 // with EINVAL
	FileIsDirectory  FileDetail = 4 // with EINVAL
	FileLoop         FileDetail = 5 // with EINVAL
	FileBadHandle    FileDetail = 6 // with EINVAL
)

var fileDetailNames = [...]string{
	FileDetailNone: "none", FileExists: "exists", FileNotEmpty: "not_empty", FileNotDirectory: "not_directory",
	FileIsDirectory: "is_directory", FileLoop: "loop", FileBadHandle: "bad_handle",
}

// String returns the name used in tests and logs.
func (d FileDetail) String() string {
	if int(d) < len(fileDetailNames) {
		return fileDetailNames[d]
	}
	return fmt.Sprintf("detail(%d)", uint8(d))
}

// ParseFileDetail reads the payload of a failed file call: nothing or one
// byte. Details of a later version read as FileDetailNone.
func ParseFileDetail(b []byte) (FileDetail, error) {
	switch {
	case len(b) == 0:
		return FileDetailNone, nil
	case len(b) > 1:
		return FileDetailNone, fmt.Errorf("%w: detail of %d bytes", ErrFilePayload, len(b))
	case int(b[0]) >= len(fileDetailNames):
		return FileDetailNone, nil
	}
	return FileDetail(b[0]), nil
}

// FileFlags say how a file is opened. With neither FileRead nor FileWrite the handle
// supports only FileStat and ReadDir.
type FileFlags uint16

const (
	FileRead      FileFlags = 1 << 0
	FileWrite     FileFlags = 1 << 1
	FileCreate    FileFlags = 1 << 2
	FileExclusive FileFlags = 1 << 3
	FileTruncate  FileFlags = 1 << 4
	FileDirectory FileFlags = 1 << 5 // fail unless it is a directory
	FileNoFollow  FileFlags = 1 << 6 // fail if the last component is a symlink
	FileSync      FileFlags = 1 << 7 // writes are durable before they are answered

	fileFlagsKnown = FileSync<<1 - 1
)

// A FileKind is the type of a directory entry.
type FileKind uint8

const (
	FileRegular   FileKind = 1
	FileFolder    FileKind = 2
	FileSymlink   FileKind = 3
	FileSpecial   FileKind = 4 // FIFO, socket or device: listed, never opened
	fileKindsKnow          = FileSpecial
)

// A FileStat describes a file. It has no owner, mode or device, which a guest has no use
// for.
type FileStat struct {
	Kind  FileKind
	Inode uint64
	Links uint32
	Size  int64 // 0 for symlinks, whose targets cannot be read
	Mtime int64
	Ctime int64
}

const fileStatSize = 1 + 8 + 4 + 8 + 8 + 8

// Append adds the wire form to b.
func (s FileStat) Append(b []byte) []byte {
	b = append(b, byte(s.Kind))
	b = binary.LittleEndian.AppendUint64(b, s.Inode)
	b = binary.LittleEndian.AppendUint32(b, s.Links)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Mtime))
	return binary.LittleEndian.AppendUint64(b, uint64(s.Ctime))
}

// ParseFileStat reads the reply of CallFileStat and CallFileLstat.
func ParseFileStat(b []byte) (FileStat, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	s := r.stat()
	return s, r.end()
}

// size reads a u64 that must be a valid file length or offset.
func (d *decoder) size() int64 {
	n := int64(d.u64())
	if n < 0 {
		d.fail("size out of range")
		return 0
	}
	return n
}

func (d *decoder) kind() FileKind {
	k := FileKind(d.u8())
	if d.err == nil && (k == 0 || k > fileKindsKnow) {
		d.fail("unknown kind")
	}
	return k
}

func (d *decoder) stat() FileStat {
	return FileStat{
		Kind: d.kind(), Inode: d.u64(), Links: d.u32(), Size: d.size(),
		Mtime: int64(d.u64()), Ctime: int64(d.u64()),
	}
}

// rest takes all remaining bytes, up to limit.
func (d *decoder) rest(limit int) []byte {
	if len(d.b) > limit {
		d.fail("too long")
		return nil
	}
	return d.take(len(d.b))
}

func (d *decoder) path() string { return string(d.rest(maxFileWirePath)) }
