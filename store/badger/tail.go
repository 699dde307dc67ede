package badger

import "encoding/binary"

// A bulkFile is what the engine knows of a bulk file.
type bulkFile struct {
	live int64  // bytes of extents that are referred to
	end  uint64 // bytes written
}

const bulkFileBytes = 8 + 8

func (f bulkFile) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(f.live)), f.end)
}

func decodeBulkFile(b []byte) (bulkFile, bool) {
	if len(b) != bulkFileBytes {
		return bulkFile{}, false
	}
	return bulkFile{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}, true
}

// mostlyGarbage says that less than half of the file is referred to.
func (f bulkFile) mostlyGarbage() bool { return f.end > 0 && 2*uint64(f.live) < f.end }

// A tail is where the next extent goes, and how the files stand. The committer
// has it; groups in flight are counted already.
type tail struct {
	file  uint32
	files map[uint32]bulkFile
}

// wasteful returns a bulk file worth compacting.
func (t tail) wasteful() (uint32, bool) {
	for n, f := range t.files {
		if n != t.file && f.live > 0 && f.mostlyGarbage() {
			return n, true
		}
	}
	return 0, false
}
