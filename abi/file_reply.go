package abi

import (
	"bytes"
	"encoding/binary"
)

// A FileOpenReply answers CallFileOpen. Content is the beginning of a regular
// file, or a FilePage of a directory.
//
// Handle 0 means that Content is all there is and the host keeps nothing
// open: reading a small file costs one call.
type FileOpenReply struct {
	Handle  uint32
	Stat    FileStat
	Content []byte
}

// FileOpenHeader is how many bytes of an open reply stand before its content.
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
	r := fileReader{b: b}
	p := FileOpenReply{Handle: r.u32(), Stat: r.stat(), Content: r.rest(maxFileContent)}
	return p, r.end()
}

// A FileWriteReply says how many bytes were written and how long the file is
// now.
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
	r := fileReader{b: b}
	p := FileWriteReply{Count: r.u32(), Size: r.size()}
	if p.Count > MaxFileChunk {
		r.fail("count out of range")
	}
	return p, r.end()
}

// A FileEntry is one name of a directory.
type FileEntry struct {
	Kind  FileKind
	Inode uint64
	Name  string // any bytes but '/' and NUL, as the file system has them
}

const fileEntryHeader = 1 + 8 + 2

// Append adds the wire form to b. Name must not exceed MaxFileName bytes.
func (e FileEntry) Append(b []byte) []byte {
	b = append(b, byte(e.Kind))
	b = binary.LittleEndian.AppendUint64(b, e.Inode)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.Name)))
	return append(b, e.Name...)
}

// A FilePage is a part of a listing: at most MaxFileEntries, without "." and
// "..". A page may be empty without being the last one.
type FilePage struct {
	End     bool
	Entries []FileEntry
}

// Append adds the wire form to b.
func (p FilePage) Append(b []byte) []byte {
	b = appendFileBool(b, p.End)
	for _, e := range p.Entries {
		b = e.Append(b)
	}
	return b
}

// ParseFilePage reads the reply of CallFileReadDir.
func ParseFilePage(b []byte) (FilePage, error) {
	r := fileReader{b: b}
	p := FilePage{End: r.bool()}
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

func (r *fileReader) entry() FileEntry {
	e := FileEntry{Kind: r.kind(), Inode: r.u64()}
	name := r.take(int(r.u16()))
	if len(name) == 0 || len(name) > MaxFileName || bytes.ContainsAny(name, "/\x00") {
		r.fail("bad name")
	}
	e.Name = string(name)
	return e
}
