package destination

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// FilesTable is the table, or the folder, of contents that records hold.
const FilesTable = "_files"

// A File is a content that rows of a batch name.
type File struct {
	Digest    store.Digest
	MediaType string // as the record calls it
	// Open opens it: ErrGone. Whoever does closes it.
	Open func(ctx context.Context) (Content, error)
}

// A Content is what is in a file.
type Content interface {
	io.ReadCloser
	Size() int64
}

// ErrGone: no record holds a content any more. Its record has a newer version.
var ErrGone = errors.New("no record holds the file any more")

// A FileKeeper is a sink that keeps contents too, each once. What was kept stays when its
// record goes.
type FileKeeper interface {
	Sink
	// KeepFiles keeps contents that are not there yet, before the rows that name them are
	// brought in. Those that are gone are left out. ErrFenced.
	KeepFiles(ctx context.Context, files []File) error
	// FilePath is where a content is, "" for a row of FilesTable.
	FilePath(f File) string
}

// FilesAtOnce is how many of some files go in one step.
const FilesAtOnce = 200

// FilePath is a path for a content below a directory. It follows from digest and media type
// alone: no name that a connector chose leads elsewhere or collides.
func FilePath(f File) string {
	digits := strings.TrimPrefix(string(f.Digest), "sha256:")
	return FilesTable + "/" + digits[:2] + "/" + digits + extensions[f.MediaType]
}

// extensions are those of types that programs open by them, and none that a system runs.
var extensions = map[string]string{
	"application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz", "application/json": ".json", "application/xml": ".xml",
	"text/plain": ".txt", "text/csv": ".csv", "text/calendar": ".ics", "text/xml": ".xml", "text/vcard": ".vcf", "message/rfc822": ".eml",
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/avif": ".avif", "image/heic": ".heic", "image/tiff": ".tiff",
	"audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/ogg": ".ogg", "audio/wav": ".wav", "video/mp4": ".mp4", "video/webm": ".webm", "application/epub+zip": ".epub",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   ".docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"application/vnd.oasis.opendocument.text":                                   ".odt", "application/vnd.oasis.opendocument.spreadsheet": ".ods",
}

// filesOf are the files that fields of a record's data name. Where path has one for them,
// out is the data with it as a member of each: path.
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

// maxSeen is how many files a Filer remembers.
const maxSeen = 20_000

// A Filer finds the files of records.
type Filer struct {
	Fields map[string]bool // that hold files
	// Open opens a content: store.ErrNotFound.
	Open func(ctx context.Context, d store.Digest) (Content, error)
	Path func(File) string
	seen map[store.Digest]bool
}

// Of returns the data of a record with the paths of its files, and those files that no record
// named before.
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
