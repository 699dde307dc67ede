package abi

import (
	"bytes"
	"encoding/binary"
)

// A FileOpenRequest opens Path of a mount. Ahead asks for up to that many bytes of its
// beginning in the reply, at most FileBlock; for a directory any Ahead asks for the first
// page.
type FileOpenRequest struct {
	Mount uint32
	Flags FileFlags
	Ahead uint32
	Path  string
}

// Append adds the wire form to b.
func (q FileOpenRequest) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, q.Mount)
	b = binary.LittleEndian.AppendUint16(b, uint16(q.Flags))
	b = binary.LittleEndian.AppendUint32(b, q.Ahead)
	return append(b, q.Path...)
}

// ParseFileOpenRequest reads the request of CallFileOpen.
func ParseFileOpenRequest(b []byte) (FileOpenRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileOpenRequest{Mount: r.u32(), Flags: FileFlags(r.u16()), Ahead: r.u32(), Path: r.path()}
	if q.Flags&^fileFlagsKnown != 0 {
		r.fail("unknown flag")
	}
	if q.Ahead > FileBlock {
		r.fail("ahead too long")
	}
	return q, r.end()
}

// A FilePathRequest names an entry: CallFileLstat, CallFileMkdir,
// CallFileUnlink and CallFileRmdir.
type FilePathRequest struct {
	Mount uint32
	Path  string
}

// Append adds the wire form to b.
func (q FilePathRequest) Append(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, q.Mount), q.Path...)
}

// ParseFilePathRequest reads the request of a call that names an entry.
func ParseFilePathRequest(b []byte) (FilePathRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FilePathRequest{Mount: r.u32(), Path: r.path()}
	return q, r.end()
}

// A FileStatRequest asks about an open file, or if Handle is 0 about a path.
type FileStatRequest struct {
	Mount  uint32
	Handle uint32
	Path   string
}

// Append adds the wire form to b.
func (q FileStatRequest) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, q.Mount)
	b = binary.LittleEndian.AppendUint32(b, q.Handle)
	return append(b, q.Path...)
}

// ParseFileStatRequest reads the request of CallFileStat.
func ParseFileStatRequest(b []byte) (FileStatRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileStatRequest{Mount: r.u32(), Handle: r.u32(), Path: r.path()}
	if q.Handle != 0 && q.Path != "" {
		r.fail("handle and path")
	}
	return q, r.end()
}

// A FileHandleRequest names an open file: CallFileClose and CallFileSync.
type FileHandleRequest struct {
	Handle uint32
}

// Append adds the wire form to b.
func (q FileHandleRequest) Append(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, q.Handle)
}

// ParseFileHandleRequest reads the request of a call that names an open file.
func ParseFileHandleRequest(b []byte) (FileHandleRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileHandleRequest{Handle: r.u32()}
	return q, r.end()
}

// A FileReadRequest asks for up to Length bytes, at most MaxFileChunk.
type FileReadRequest struct {
	Handle uint32
	Offset int64
	Length uint32
}

// Append adds the wire form to b.
func (q FileReadRequest) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, q.Handle)
	b = binary.LittleEndian.AppendUint64(b, uint64(q.Offset))
	return binary.LittleEndian.AppendUint32(b, q.Length)
}

// ParseFileReadRequest reads the request of CallFileRead.
func ParseFileReadRequest(b []byte) (FileReadRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileReadRequest{Handle: r.u32(), Offset: r.size(), Length: r.u32()}
	if q.Length > MaxFileChunk {
		r.fail("read too long")
	}
	return q, r.end()
}

// A FileWriteRequest writes Data, at most MaxFileChunk bytes, at Offset, or at the end of
// the file if AtEnd is set.
type FileWriteRequest struct {
	Handle uint32
	AtEnd  bool
	Offset int64
	Data   []byte
}

// Append adds the wire form to b.
func (q FileWriteRequest) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, q.Handle)
	b = append(b, boolByte(q.AtEnd))
	b = binary.LittleEndian.AppendUint64(b, uint64(q.Offset))
	return append(b, q.Data...)
}

// ParseFileWriteRequest reads the request of CallFileWrite. Data aliases b.
func ParseFileWriteRequest(b []byte) (FileWriteRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileWriteRequest{Handle: r.u32(), AtEnd: r.boolean(), Offset: r.size(), Data: r.rest(MaxFileChunk)}
	return q, r.end()
}

// A FileReadDirRequest asks for the next page of an open directory, or the first if Rewind
// is set.
type FileReadDirRequest struct {
	Handle uint32
	Rewind bool
}

// Append adds the wire form to b.
func (q FileReadDirRequest) Append(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, q.Handle), boolByte(q.Rewind))
}

// ParseFileReadDirRequest reads the request of CallFileReadDir.
func ParseFileReadDirRequest(b []byte) (FileReadDirRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileReadDirRequest{Handle: r.u32(), Rewind: r.boolean()}
	return q, r.end()
}

// A FileRenameRequest moves From to To within one mount.
type FileRenameRequest struct {
	Mount    uint32
	From, To string
}

// Append adds the wire form to b. Neither path may exceed 65,535 bytes.
func (q FileRenameRequest) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, q.Mount)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(q.From)))
	b = append(b, q.From...)
	return append(b, q.To...)
}

// ParseFileRenameRequest reads the request of CallFileRename.
func ParseFileRenameRequest(b []byte) (FileRenameRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileRenameRequest{Mount: r.u32()}
	q.From = string(r.take(int(r.u16())))
	q.To = r.path()
	return q, r.end()
}

// A FileTruncateRequest sets the size of a file that is open for writing.
type FileTruncateRequest struct {
	Handle uint32
	Size   int64
}

// Append adds the wire form to b.
func (q FileTruncateRequest) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, q.Handle)
	return binary.LittleEndian.AppendUint64(b, uint64(q.Size))
}

// ParseFileTruncateRequest reads the request of CallFileTruncate.
func ParseFileTruncateRequest(b []byte) (FileTruncateRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileTruncateRequest{Handle: r.u32(), Size: r.size()}
	return q, r.end()
}

// A FileTimesRequest sets access and modification time, each only if its Set
// flag says so.
type FileTimesRequest struct {
	Mount              uint32
	SetAtime, SetMtime bool
	Atime, Mtime       int64
	Path               string
}

// Append adds the wire form to b.
func (q FileTimesRequest) Append(b []byte) []byte {
	var set byte
	if q.SetAtime {
		set |= 1
	}
	if q.SetMtime {
		set |= 2
	}
	b = append(binary.LittleEndian.AppendUint32(b, q.Mount), set)
	b = binary.LittleEndian.AppendUint64(b, uint64(q.Atime))
	b = binary.LittleEndian.AppendUint64(b, uint64(q.Mtime))
	return append(b, q.Path...)
}

// ParseFileTimesRequest reads the request of CallFileTimes.
func ParseFileTimesRequest(b []byte) (FileTimesRequest, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	q := FileTimesRequest{Mount: r.u32()}
	set := r.u8()
	if set > 3 {
		r.fail("unknown flag")
	}
	q.SetAtime, q.SetMtime = set&1 != 0, set&2 != 0
	q.Atime, q.Mtime, q.Path = int64(r.u64()), int64(r.u64()), r.path()
	return q, r.end()
}

// A FileOpenReply answers CallFileOpen. Content is the beginning of a regular file, or a
// FilePage of a directory.
//
// Handle 0 means that Content is complete and the host keeps nothing open, so that reading
// a small file takes one call.
type FileOpenReply struct {
	Handle  uint32
	Stat    FileStat
	Content []byte
}

// FileOpenHeader is the size of an open reply without its content, in bytes.
const FileOpenHeader = 4 + fileStatSize

// maxFileContent bounds Content: a block, or a page of entries.
const maxFileContent = max(FileBlock, 1+MaxFileEntries*(fileEntryHeader+MaxFileName))

// Append adds the wire form to b.
func (p FileOpenReply) Append(b []byte) []byte {
	b = p.Stat.Append(binary.LittleEndian.AppendUint32(b, p.Handle))
	return append(b, p.Content...)
}

// ParseFileOpenReply reads the reply of CallFileOpen. Content aliases b.
func ParseFileOpenReply(b []byte) (FileOpenReply, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	p := FileOpenReply{Handle: r.u32(), Stat: r.stat(), Content: r.rest(maxFileContent)}
	return p, r.end()
}

// A FileWriteReply has the number of bytes written and the new size of the file.
type FileWriteReply struct {
	Count uint32
	Size  int64
}

// Append adds the wire form to b.
func (p FileWriteReply) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, p.Count)
	return binary.LittleEndian.AppendUint64(b, uint64(p.Size))
}

// ParseFileWriteReply reads the reply of CallFileWrite.
func ParseFileWriteReply(b []byte) (FileWriteReply, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	p := FileWriteReply{Count: r.u32(), Size: r.size()}
	if p.Count > MaxFileChunk {
		r.fail("count out of range")
	}
	return p, r.end()
}

// A FileEntry is an entry of a directory.
type FileEntry struct {
	Kind  FileKind
	Inode uint64
	Name  string // any bytes but '/' and NUL
}

const fileEntryHeader = 1 + 8 + 2

// Append adds the wire form to b. Name must not exceed MaxFileName bytes.
func (e FileEntry) Append(b []byte) []byte {
	b = append(b, byte(e.Kind))
	b = binary.LittleEndian.AppendUint64(b, e.Inode)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.Name)))
	return append(b, e.Name...)
}

// A FilePage is part of a listing: at most MaxFileEntries entries, without "." and "..". A
// page may be empty without being the last.
type FilePage struct {
	End     bool
	Entries []FileEntry
}

// Append adds the wire form to b.
func (p FilePage) Append(b []byte) []byte {
	b = append(b, boolByte(p.End))
	for _, e := range p.Entries {
		b = e.Append(b)
	}
	return b
}

// ParseFilePage reads the reply of CallFileReadDir.
func ParseFilePage(b []byte) (FilePage, error) {
	r := decoder{b: b, sentinel: ErrFilePayload}
	p := FilePage{End: r.boolean()}
	for len(r.b) > 0 && r.err == nil {
		if len(p.Entries) == MaxFileEntries {
			r.fail("too many entries")
			break
		}
		p.Entries = append(p.Entries, r.entry())
	}
	if r.err != nil {
		return FilePage{}, r.err
	}
	return p, nil
}

func (r *decoder) entry() FileEntry {
	e := FileEntry{Kind: r.kind(), Inode: r.u64()}
	name := r.take(int(r.u16()))
	if len(name) == 0 || len(name) > MaxFileName || bytes.ContainsAny(name, "/\x00") {
		r.fail("bad name")
	}
	e.Name = string(name)
	return e
}
