package destination

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// FilesTable is the table or folder of contents that records refer to.
const FilesTable = "_files"

// A File is a content that rows of a batch refer to.
type File struct {
	Digest    store.Digest
	MediaType string // according to the record
	// Open opens the content, which the caller must close. It returns ErrGone if no record refers to it any more.
	Open func(ctx context.Context) (Content, error)
}

// A Content is an open file.
type Content interface {
	io.ReadCloser
	Size() int64
}

// ErrGone reports that no record refers to a content any more, because its record has a newer version.
var ErrGone = errors.New("no record holds the file any more")

// A FileKeeper is a sink that also stores contents, once each. A stored content stays when its record is deleted.
type FileKeeper interface {
	Sink
	// KeepFiles stores contents that are missing, before the rows that refer to them are brought in. It skips those
	// that are gone. It may return ErrFenced.
	KeepFiles(ctx context.Context, files []File) error
	// FilePath returns the path of a content, or "" if it is a row of FilesTable.
	FilePath(f File) string
}

// FilesAtOnce bounds the files in one call of KeepFiles.
const FilesAtOnce = 200

// FilePath returns the path of a content below a directory. It depends only on digest and media type, so no name chosen
// by a connector can lead elsewhere or collide.
func FilePath(f File) string {
	digits := strings.TrimPrefix(string(f.Digest), "sha256:")
	return FilesTable + "/" + digits[:2] + "/" + digits + extensions[f.MediaType]
}

// extensions has the types that programs recognize by extension, but none that a system executes.
var extensions = map[string]string{
	"application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz", "application/json": ".json",
	"application/xml": ".xml", "text/plain": ".txt", "text/csv": ".csv", "text/calendar": ".ics", "text/xml": ".xml",
	"text/vcard": ".vcf", "message/rfc822": ".eml", "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif",
	"image/webp": ".webp", "image/avif": ".avif", "image/heic": ".heic", "image/tiff": ".tiff", "audio/mpeg": ".mp3",
	"audio/mp4": ".m4a", "audio/ogg": ".ogg", "audio/wav": ".wav", "video/mp4": ".mp4", "video/webm": ".webm",
	"application/epub+zip": ".epub", "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"application/vnd.oasis.opendocument.text":                                   ".odt",
	"application/vnd.oasis.opendocument.spreadsheet":                            ".ods",
}

// filesOf returns the files that the given fields of a record's data refer to. out is the data with the paths, where
// path returns one, added to these objects as the member "path".
func filesOf(data []byte, fields map[string]bool, path func(File) string) (out []byte, files []File) {
	changed := false
	one := func(v strictjson.Value) []byte {
		digest, _ := v.Member("digest")
		media, _ := v.Member("media_type")
		text, _ := digest.Text()
		d, err := store.ParseDigest(text)
		if err != nil {
			return v.Raw
		}
		f := File{Digest: d}
		f.MediaType, _ = media.Text()
		files = append(files, f)
		at := path(f)
		if at == "" {
			return v.Raw
		}
		changed = true
		b := append([]byte(`{"path":`), strictjson.AppendQuote(nil, at)...)
		for name, m := range v.Members() {
			if name != "path" {
				b = append(append(strictjson.AppendQuote(append(b, ','), name), ':'), m.Raw...)
			}
		}
		return append(b, '}')
	}
	sep := byte('{')
	for name, v := range strictjson.ValueOf(data).Members() {
		out = append(strictjson.AppendQuote(append(out, sep), name), ':')
		sep = ','
		switch {
		case fields[name] && v.Is(strictjson.KindObject):
			out = append(out, one(v)...)
		case fields[name] && v.Is(strictjson.KindArray):
			open := byte('[')
			for item := range v.Items() {
				out = append(append(out, open), one(item)...)
				open = ','
			}
			if open == '[' {
				out = append(out, '[')
			}
			out = append(out, ']')
		default:
			out = append(out, v.Raw...)
		}
	}
	if !changed {
		return data, files
	}
	return append(out, '}'), files
}

// maxSeen bounds the files that a Filer remembers.
const maxSeen = 20_000

// A Filer finds the files that records refer to.
type Filer struct {
	Fields map[string]bool // fields with files
	// Open opens a content. It returns store.ErrNotFound if there is none.
	Open func(ctx context.Context, d store.Digest) (Content, error)
	Path func(File) string
	seen map[store.Digest]bool
}

// Of returns the data of a record with the paths of its files, and those files that no earlier record referred to.
func (x *Filer) Of(data []byte) ([]byte, []File) {
	out, files := filesOf(data, x.Fields, x.Path)
	fresh := files[:0]
	for _, f := range files {
		if x.seen[f.Digest] {
			continue
		}
		if x.seen == nil || len(x.seen) == maxSeen {
			x.seen = map[store.Digest]bool{}
		}
		x.seen[f.Digest] = true
		f.Open = func(ctx context.Context) (Content, error) {
			c, err := x.Open(ctx, f.Digest)
			if errors.Is(err, store.ErrNotFound) {
				err = ErrGone
			}
			return c, err
		}
		fresh = append(fresh, f)
	}
	return out, fresh
}
