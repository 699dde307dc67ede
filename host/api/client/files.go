package client

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

var _ host.Files = fileClient{}

// Files implements host.Files.
func (c fileClient) Files(ctx context.Context, q store.FileQuery) (store.FilePage, error) {
	query := url.Values{}
	for name, value := range map[string]string{"stream": string(q.Stream), "key": q.Key, "cursor": q.After} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(min(q.Limit, 1000)))
	}
	var got list[host.File]
	if err := c.get(ctx, at("connections", string(q.Connection), "files"), query, &got); err != nil {
		return store.FilePage{}, err
	}
	var p store.FilePage
	for _, f := range got.Data {
		p.Files = append(p.Files, store.HeldFile{Stream: store.Stream(f.Stream), Key: f.Key, Field: f.Field,
			File: store.File{Digest: store.Digest(f.Digest), Size: f.Size, MediaType: f.MediaType, Name: f.Name}})
	}
	if got.NextCursor != nil {
		p.After, p.More = *got.NextCursor, *got.NextCursor != ""
	}
	return p, nil
}

// OpenFile implements host.Files. Reading a content from beginning to end
// checks it against its digest; after an error, discard what was read.
func (c fileClient) OpenFile(ctx context.Context, id store.ConnectionID,
	d store.Digest) (store.FileContent, store.File, error) {
	digits := strings.TrimPrefix(string(d), "sha256:")
	f := &content{ctx: ctx, transport: c.transport, path: at("connections", string(id), "files", digits), digest: d}
	head, err := f.ask()
	if err != nil {
		return nil, store.File{}, err
	}
	info := store.File{Digest: d, Size: f.size, MediaType: head.Get("Content-Type")}
	if _, said, err := mime.ParseMediaType(head.Get("Content-Disposition")); err == nil && said["filename"] != digits {
		info.Name = said["filename"]
	}
	return f, info, nil
}

// A content is a file content that is fetched over HTTP from the current offset.
type content struct {
	*transport
	ctx    context.Context
	path   string
	digest store.Digest
	size   int64
	offset int64
	body   io.ReadCloser // from offset on; nil before a request
	sum    hash.Hash     // of all read so far; nil after a Seek elsewhere
}

// ask requests the rest of the content. An empty content has no range.
func (f *content) ask() (http.Header, error) {
	res, err := f.send(f.ctx, http.MethodGet, f.path, nil, http.Header{"Range": {fmt.Sprintf("bytes=%d-", f.offset)}}, nil)
	if err != nil {
		return nil, err
	}
	n := max(res.ContentLength, 0)
	if res.StatusCode != http.StatusOK {
		_, size, _ := strings.Cut(res.Header.Get("Content-Range"), "/")
		if n, err = strconv.ParseInt(size, 10, 64); err != nil || res.StatusCode != http.StatusPartialContent {
			defer res.Body.Close()
			return nil, errorOf(res)
		}
	}
	f.body, f.size = res.Body, n
	if f.offset == 0 {
		f.sum = sha256.New()
	}
	return res.Header, nil
}

// Size implements store.FileContent.
func (f *content) Size() int64 { return f.size }

// Read implements io.Reader.
func (f *content) Read(b []byte) (int, error) {
	if f.offset >= f.size {
		return 0, f.ended()
	}
	if f.body == nil {
		if _, err := f.ask(); err != nil {
			return 0, err
		}
	}
	n, err := f.body.Read(b[:min(int64(len(b)), f.size-f.offset)])
	f.offset += int64(n)
	if f.sum != nil {
		f.sum.Write(b[:n])
	}
	switch {
	case f.offset == f.size:
		return n, f.ended()
	case err != nil:
		return n, fmt.Errorf("file %s broke off: %w", f.digest, err)
	}
	return n, nil
}

func (f *content) ended() error {
	if f.sum != nil && store.DigestOf(f.sum.Sum(nil)) != f.digest {
		return fmt.Errorf("file %s came as another; ask for it again", f.digest)
	}
	return io.EOF
}

// Seek implements io.Seeker.
func (f *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	if offset != f.offset {
		_ = f.Close() // its offset is wrong now
		f.offset, f.body, f.sum = offset, nil, nil
	}
	return offset, nil
}

// Close implements io.Closer.
func (f *content) Close() error {
	if f.body == nil {
		return nil
	}
	return f.body.Close()
}
