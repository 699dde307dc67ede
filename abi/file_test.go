package abi_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

// appender is what every file payload can do.
type appender interface{ Append([]byte) []byte }

// fileCodecs has a parser of every payload, by name.
var fileCodecs = map[string]func([]byte) (appender, error){
	"open":       func(b []byte) (appender, error) { return abi.ParseFileOpenRequest(b) },
	"path":       func(b []byte) (appender, error) { return abi.ParseFilePathRequest(b) },
	"stat":       func(b []byte) (appender, error) { return abi.ParseFileStatRequest(b) },
	"handle":     func(b []byte) (appender, error) { return abi.ParseFileHandleRequest(b) },
	"read":       func(b []byte) (appender, error) { return abi.ParseFileReadRequest(b) },
	"write":      func(b []byte) (appender, error) { return abi.ParseFileWriteRequest(b) },
	"readdir":    func(b []byte) (appender, error) { return abi.ParseFileReadDirRequest(b) },
	"rename":     func(b []byte) (appender, error) { return abi.ParseFileRenameRequest(b) },
	"truncate":   func(b []byte) (appender, error) { return abi.ParseFileTruncateRequest(b) },
	"times":      func(b []byte) (appender, error) { return abi.ParseFileTimesRequest(b) },
	"open-reply": func(b []byte) (appender, error) { return abi.ParseFileOpenReply(b) },
	"stat-reply": func(b []byte) (appender, error) { return abi.ParseFileStat(b) },
	"written":    func(b []byte) (appender, error) { return abi.ParseFileWriteReply(b) },
	"page":       func(b []byte) (appender, error) { return abi.ParseFilePage(b) },
}

var fileStat = abi.FileStat{Kind: abi.FileRegular, Inode: 77, Links: 1, Size: 1234, Mtime: -5, Ctime: 1 << 60}

// fileSamples has one payload of each kind with every member set.
var fileSamples = map[string]appender{
	"open": abi.FileOpenRequest{Mount: 2, Flags: abi.FileRead | abi.FileSync, Ahead: abi.FileBlock, Path: "a/ü"},
	"path": abi.FilePathRequest{Mount: 1, Path: "a/b"}, "stat": abi.FileStatRequest{Mount: 1, Path: "x"},
	"handle":     abi.FileHandleRequest{Handle: 9},
	"read":       abi.FileReadRequest{Handle: 3, Offset: 1 << 40, Length: abi.MaxFileChunk},
	"write":      abi.FileWriteRequest{Handle: 3, AtEnd: true, Offset: 7, Data: []byte("data")},
	"readdir":    abi.FileReadDirRequest{Handle: 3, Rewind: true},
	"rename":     abi.FileRenameRequest{Mount: 1, From: "old", To: "new/name"},
	"truncate":   abi.FileTruncateRequest{Handle: 4, Size: 10},
	"times":      abi.FileTimesRequest{Mount: 1, SetAtime: true, Atime: 5, Mtime: -6, Path: "p"},
	"open-reply": abi.FileOpenReply{Handle: 1, Stat: fileStat, Content: []byte("hello")}, "stat-reply": fileStat,
	"written": abi.FileWriteReply{Count: 4, Size: 99}, "page": abi.FilePage{End: true, Entries: []abi.FileEntry{
		{Kind: abi.FileFolder, Inode: 5, Name: "dir"}, {Kind: abi.FileSpecial, Inode: 6, Name: "\xff odd"},
	}},
}

func TestFilePayloadsRoundTrip(t *testing.T) {
	for name, want := range fileSamples {
		got, err := fileCodecs[name](want.Append(nil))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(fileSamples) != len(fileCodecs) {
		t.Errorf("%d samples for %d codecs", len(fileSamples), len(fileCodecs))
	}
}

// Every payload with a fixed shape is refused when it is cut or continued.
func TestFilePayloadsAreExact(t *testing.T) {
	for _, name := range []string{"handle", "read", "readdir", "truncate", "stat-reply", "written"} {
		whole := fileSamples[name].Append(nil)
		for n := range len(whole) {
			if _, err := fileCodecs[name](whole[:n]); !errors.Is(err, abi.ErrFilePayload) {
				t.Errorf("%s cut to %d bytes: %v", name, n, err)
			}
		}
		if _, err := fileCodecs[name](append(bytes.Clone(whole), 0)); !errors.Is(err, abi.ErrFilePayload) {
			t.Errorf("%s with a byte more: %v", name, err)
		}
	}
}

func TestFilePayloadsRefuse(t *testing.T) {
	longName := abi.FilePage{Entries: []abi.FileEntry{{Kind: 1, Name: strings.Repeat("n", abi.MaxFileName+1)}}}
	crowd := abi.FilePage{Entries: make([]abi.FileEntry, abi.MaxFileEntries+1)}
	for i := range crowd.Entries {
		crowd.Entries[i] = abi.FileEntry{Kind: abi.FileRegular, Name: "n"}
	}
	for _, c := range []struct {
		codec, why string
		payload    []byte
	}{
		{"open", "unknown flag", abi.FileOpenRequest{Flags: 1 << 8}.Append(nil)},
		{"open", "ahead over a block", abi.FileOpenRequest{Ahead: abi.FileBlock + 1}.Append(nil)},
		{"open", "path the wire cannot carry", abi.FileOpenRequest{Path: strings.Repeat("p", 1<<16)}.Append(nil)},
		{"stat", "handle and path", abi.FileStatRequest{Handle: 1, Path: "p"}.Append(nil)},
		{"read", "over a chunk", abi.FileReadRequest{Length: abi.MaxFileChunk + 1}.Append(nil)},
		{"read", "negative offset", abi.FileReadRequest{Offset: -1}.Append(nil)},
		{"write", "negative offset", abi.FileWriteRequest{Offset: -1}.Append(nil)},
		{"write", "over a chunk", abi.FileWriteRequest{Data: make([]byte, abi.MaxFileChunk+1)}.Append(nil)},
		{"write", "not a boolean", []byte{0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"truncate", "negative size", abi.FileTruncateRequest{Size: -1}.Append(nil)},
		{"times", "unknown flag", append([]byte{0, 0, 0, 0, 4}, make([]byte, 16)...)},
		{"rename", "length over the payload", []byte{0, 0, 0, 0, 9, 0, 'a'}},
		{"stat-reply", "unknown kind", abi.FileStat{Kind: 5}.Append(nil)},
		{"stat-reply", "no kind", abi.FileStat{}.Append(nil)},
		{"stat-reply", "negative size", abi.FileStat{Kind: 1, Size: -1}.Append(nil)},
		{"written", "count over a chunk", abi.FileWriteReply{Count: abi.MaxFileChunk + 1}.Append(nil)},
		{"page", "slash in a name", abi.FilePage{Entries: []abi.FileEntry{{Kind: 1, Name: "a/b"}}}.Append(nil)},
		{"page", "NUL in a name", abi.FilePage{Entries: []abi.FileEntry{{Kind: 1, Name: "a\x00"}}}.Append(nil)},
		{"page", "no name", abi.FilePage{Entries: []abi.FileEntry{{Kind: 1}}}.Append(nil)},
		{"page", "long name", longName.Append(nil)},
		{"page", "too many entries", crowd.Append(nil)},
	} {
		if _, err := fileCodecs[c.codec](c.payload); !errors.Is(err, abi.ErrFilePayload) {
			t.Errorf("%s, %s: got %v, want ErrFilePayload", c.codec, c.why, err)
		}
	}
}

func TestFileDetail(t *testing.T) {
	for d := abi.FileDetailNone; d <= abi.FileBadHandle; d++ {
		got, err := abi.ParseFileDetail([]byte{byte(d)})
		if err != nil || got != d {
			t.Errorf("detail %v reads as %v, %v", d, got, err)
		}
	}
	if got, err := abi.ParseFileDetail(nil); got != abi.FileDetailNone || err != nil {
		t.Errorf("no detail: %v, %v", got, err)
	}
	if got, err := abi.ParseFileDetail([]byte{200}); got != abi.FileDetailNone || err != nil {
		t.Errorf("a later detail: %v, %v", got, err)
	}
	if _, err := abi.ParseFileDetail([]byte{1, 1}); !errors.Is(err, abi.ErrFilePayload) {
		t.Errorf("two details: %v", err)
	}
}

// The numbers are on the wire between binaries of one version only, and in
// stored fuzz seeds; a change of them is a change to look at.
func TestFileNumbersAreFrozen(t *testing.T) {
	got := []int{
		int(abi.FileExists), int(abi.FileNotEmpty), int(abi.FileNotDirectory), int(abi.FileIsDirectory), int(abi.FileLoop),
		int(abi.FileBadHandle), int(abi.FileRead), int(abi.FileWrite), int(abi.FileCreate), int(abi.FileExclusive),
		int(abi.FileTruncate), int(abi.FileDirectory), int(abi.FileNoFollow), int(abi.FileSync), int(abi.FileRegular),
		int(abi.FileFolder), int(abi.FileSymlink), int(abi.FileSpecial),
	}
	want := []int{1, 2, 3, 4, 5, 6, 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 3, 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a parser accepts, it writes back byte for byte; so no two payloads mean
// the same, and nothing is accepted that no one writes.
func FuzzFilePayloads(f *testing.F) {
	for _, s := range fileSamples {
		f.Add(s.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, parse := range fileCodecs {
			p, err := parse(b)
			if err != nil {
				if !errors.Is(err, abi.ErrFilePayload) {
					t.Errorf("%s: %v is no ErrFilePayload", name, err)
				}
				continue
			}
			if again := p.Append(nil); !bytes.Equal(again, b) {
				t.Errorf("%s: %x parses and is written as %x", name, b, again)
			}
		}
	})
}
