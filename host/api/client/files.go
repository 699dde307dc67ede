package client

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// EachFile calls do with every file that records of a connection hold, by stream and key.
// stream "" is all.
func (c fileClient) EachFile(ctx context.Context, id store.ConnectionID, stream store.Stream, do func(host.File) error) error {
	query := url.Values{}
	if stream != "" {
		query.Set("stream", string(stream))
	}
	return each(ctx, c.transport, at("connections", string(id), "files"), query, func(f host.File) (bool, error) { return true, do(f) })
}

// File writes a content, which is checked against its digest. After an error what was written
// is to be thrown away.
func (c fileClient) File(ctx context.Context, id store.ConnectionID, digest store.Digest, to io.Writer) error {
	res, err := c.send(ctx, http.MethodGet, at("connections", string(id), "files", strings.TrimPrefix(string(digest), "sha256:")), nil, http.Header{}, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errorOf(res)
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), res.Body); err != nil {
		return fmt.Errorf("file %s broke off: %w", digest, err)
	}
	if store.DigestOf(sum.Sum(nil)) != digest {
		return fmt.Errorf("file %s came as another; ask for it again", digest)
	}
	return nil
}
