package bulk

import "encoding/binary"

// A bulkFile is what the engine knows of a bulk file.
type File struct {
	Live int64  // bytes of extents that are referred to
	End  uint64 // bytes written
}

const FileBytes = 8 + 8

func (f File) Append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(f.Live)), f.End)
}

func DecodeFile(b []byte) (File, bool) {
	if len(b) != FileBytes {
		return File{}, false
	}
	return File{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}, true
}

// mostlyGarbage says that less than half of the file is referred to.
func (f File) MostlyGarbage() bool { return f.End > 0 && 2*uint64(f.Live) < f.End }

// A tail is where the next extent goes, and how the files stand. The committer
// has it; groups in flight are counted already.
type Tail struct {
	File  uint32
	Files map[uint32]File
}

// wasteful returns a bulk file worth compacting.
func (t Tail) Wasteful() (uint32, bool) {
	for n, f := range t.Files {
		if n != t.File && f.Live > 0 && f.MostlyGarbage() {
			return n, true
		}
	}
	return 0, false
}
