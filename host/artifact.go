package host

import (
	"context"
	"errors"
	"io"

	"github.com/sluicehost/sluice/store"
)

// Artifacts opens files that runs left behind. A run's log lists its artifacts.
type Artifacts interface {
	// OpenArtifact opens an artifact of a type that the host itself makes. It returns
	// store.ErrNotFound if there is none, or no longer one. The caller closes content.
	OpenArtifact(ctx context.Context, run store.RunID, artifactType string) (content io.ReadSeekCloser,
		size int64, err error)
	// ArtifactSize returns the artifact's size without opening it: pages ask every other
	// second.
	ArtifactSize(ctx context.Context, run store.RunID, artifactType string) (int64, error)
}

// KeptArtifact reports whether the artifact still exists and has the given size.
func KeptArtifact(ctx context.Context, h Artifacts, run store.RunID, artifactType string, size int64) (bool, error) {
	has, err := h.ArtifactSize(ctx, run, artifactType)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return has == size, err
}
