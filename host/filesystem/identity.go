package filesystem

import (
	"io/fs"

	"github.com/sluicehost/sluice/abi"
)

// An identity identifies a file independently of its name.
type identity struct {
	device, inode uint64
	kind          fs.FileMode
}

// kindOf returns the contract's name of a file type.
func kindOf(m fs.FileMode) abi.FileKind {
	switch m.Type() {
	case 0:
		return abi.FileRegular
	case fs.ModeDir:
		return abi.FileFolder
	case fs.ModeSymlink:
		return abi.FileSymlink
	default:
		return abi.FileSpecial
	}
}

// describe returns what a guest learns about a file. It hides the size of a symlink, which
// is the length of its unreadable target.
func describe(fi fs.FileInfo) abi.FileStat {
	id, _ := identify(fi)
	st := abi.FileStat{
		Kind: kindOf(fi.Mode()), Inode: id.inode, Links: uint32(min(links(fi), 1<<32-1)), Size: max(fi.Size(), 0),
		Mtime: fi.ModTime().UnixNano(), Ctime: changed(fi),
	}
	if st.Kind == abi.FileSymlink {
		st.Size = 0
	}
	return st
}
