package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// Artifacts returns the files that a run left and that the host still has, oldest first.
func (c artifactClient) Artifacts(ctx context.Context, run store.RunID) ([]timeline.Artifact, error) {
	var out list[timeline.Artifact]
	err := c.get(ctx, at("runs", string(run), "artifacts"), nil, &out)
	return out.Data, err
}

// Artifact writes the content of an artifact and checks it against its digest. The host
// records the read. After an error, discard what was written.
func (c artifactClient) Artifact(ctx context.Context, a timeline.Artifact, to io.Writer) error {
	res, err := c.send(ctx, http.MethodGet, at("runs", string(a.RunID), "artifacts", a.ArtifactID, "content"),
		nil, http.Header{}, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errorOf(res)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(res.Body, a.Size+1))
	if err != nil {
		return fmt.Errorf("the file of %s broke off: %w", a.RunID, err)
	}
	if n != a.Size || "sha256:"+hex.EncodeToString(sum.Sum(nil)) != a.Digest {
		return fmt.Errorf("the file of %s is not what the run left; ask for it again", a.RunID)
	}
	return nil
}
