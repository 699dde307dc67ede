package filesystem

import (
	"context"
	"io"

	"github.com/sluicehost/sluice/abi"
)

// readStep is how much is read between checks of the context, in bytes.
const readStep = 256 * abi.KiB

func (f *FS) read(ctx context.Context, q abi.FileReadRequest) ([]byte, error) {
	h, err := f.get(q.Handle, abi.FileRead)
	if err != nil {
		return nil, err
	}
	b := f.reply(int(q.Length))[:q.Length]
	done := 0
	for done < len(b) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := h.file.ReadAt(b[done:min(done+readStep, len(b))], q.Offset+int64(done))
		done += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b[:done], nil
}

func (f *FS) readDir(ctx context.Context, q abi.FileReadDirRequest) ([]byte, error) {
	h, err := f.get(q.Handle, 0)
	if err != nil {
		return nil, err
	}
	if !h.dir() {
		return nil, errNotDirectory
	}
	if q.Rewind {
		if _, err := h.file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
	}
	b, _, err := h.page(ctx, f.reply(0))
	if err != nil {
		return nil, err
	}
	f.buf = b
	return b, nil
}

// listStep is how many entries are processed between checks of the context.
const listStep = 100

// page appends the next page of a directory to b and reports whether there is more. It
// reads at most MaxFileEntries names, so a page can be empty without being the last.
//
// Names are looked up relative to the open directory, so that concurrent changes of its
// path have no effect (CVE-2026-27139).
func (h *handle) page(ctx context.Context, b []byte) (_ []byte, more bool, err error) {
	page := abi.FilePage{}
	for seen := 0; seen < abi.MaxFileEntries && !page.End; {
		if err := ctx.Err(); err != nil {
			return b, true, err
		}
		found, err := h.file.Readdir(min(listStep, abi.MaxFileEntries-seen))
		if err != nil && err != io.EOF {
			return b, true, err
		}
		page.End = err == io.EOF
		seen += len(found)
		for _, fi := range found {
			if id, _ := identify(fi); h.mount.shows(fi) && len(fi.Name()) <= abi.MaxFileName {
				page.Entries = append(page.Entries, abi.FileEntry{Kind: kindOf(fi.Mode()), Inode: id.inode, Name: fi.Name()})
			}
		}
	}
	return page.Append(b), !page.End, nil
}
