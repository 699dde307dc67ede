package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// traceType is the type of browser traces among artifacts (A84).
const traceType = "browser-trace"

// artifacts are what the log says a run left, where the file is still there.
func (s stored) artifacts(ctx context.Context, id store.RunID) (kept []timeline.Artifact, err error) {
	var f timeline.Fold
	for more := true; more; {
		events, err := s.Events(ctx, id, f.Next(), page)
		if err != nil {
			return nil, fmt.Errorf("read events of %s: %w", id, err)
		}
		f.Add(events...)
		more = len(events) == page
	}
	for _, a := range f.Artifacts() {
		there, err := host.KeptArtifact(ctx, s.host, id, a.ArtifactType, a.Size)
		if err != nil {
			return nil, err
		}
		if there {
			kept = append(kept, a)
		}
	}
	return kept, nil
}

// artifact copies the file, and writes down that it was read (A168).
func (s stored) artifact(ctx context.Context, a timeline.Artifact, to io.Writer) (err error) {
	content, _, err := s.host.OpenArtifact(ctx, a.RunID, a.ArtifactType)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), content); err != nil {
		return fmt.Errorf("read the trace of %s: %w", a.RunID, err)
	}
	if "sha256:"+hex.EncodeToString(sum.Sum(nil)) != a.Digest {
		return fmt.Errorf("the trace of %s is not what the run left: its file was changed", a.RunID)
	}
	return s.host.Audit(audit.Event{Action: audit.ArtifactRead, Target: string(a.RunID), Outcome: audit.Done, Details: []audit.Detail{audit.Digest(a.Digest)}})
}

// artifacts of a host that does not know them are none, and so are those of a key
// that may not read them.
func (s served) artifacts(ctx context.Context, id store.RunID) ([]timeline.Artifact, error) {
	all, err := s.Artifacts(ctx, id)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == "forbidden" {
		return nil, errMayNot
	}
	return all, err
}

var errMayNot = errors.New("the key may not read what runs left: it lacks artifacts:read")

func (s served) artifact(ctx context.Context, a timeline.Artifact, to io.Writer) error {
	return s.Artifact(ctx, a, to)
}
