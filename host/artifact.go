package host

import (
	"context"
	"errors"
	"io"

	"github.com/sluicehost/sluice/store"
)

// Artifacts are the files that runs left. What there is of them says a run's log.
type Artifacts interface {
	// OpenArtifact opens the file of an artifact of a type that the host makes itself:
	// store.ErrNotFound when there is none, or none any more. The caller closes it.
	OpenArtifact(ctx context.Context, run store.RunID, artifactType string) (content io.ReadSeekCloser, size int64, err error)
	// ArtifactSize is how long it is, without opening it: pages ask every other second.
	ArtifactSize(ctx context.Context, run store.RunID, artifactType string) (int64, error)
}

// KeptArtifact reports whether the file is still there, and as long as it was.
func KeptArtifact(ctx context.Context, h Artifacts, run store.RunID, artifactType string, size int64) (bool, error) {
	has, err := h.ArtifactSize(ctx, run, artifactType)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return has == size, err
}
