package timeline

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// An Artifact is a file that a run left, as its log announces it. Whether the
// file is still there is not the log's to say.
type Artifact struct {
	ArtifactID   string      `json:"artifactId"`
	ArtifactType string      `json:"artifactType"`
	RunID        store.RunID `json:"runId"`
	NodeID       string      `json:"nodeId"`
	CreatedAt    string      `json:"createdAt"`
	Summary      string      `json:"summary,omitempty"`
	MediaType    string      `json:"mediaType"`
	Size         int64       `json:"size"`
	Digest       string      `json:"digest"`
	ContentURL   string      `json:"contentUrl,omitempty"` // set by the API
}

// Bounds of what is kept of artifacts.
const (
	maxArtifacts = 64
	maxSummary   = 500
	maxTypeName  = 128
)

// Artifacts are those that the run left so far, oldest first.
func (f *Fold) Artifacts() []Artifact { return slices.Clone(f.artifacts) }

func (f *Fold) artifact(e store.Event, m members) {
	if len(f.artifacts) == maxArtifacts || m.text("artifactId") == "" {
		return
	}
	f.artifacts = append(f.artifacts, Artifact{
		ArtifactID: abi.Cut(m.text("artifactId"), maxTypeName), ArtifactType: abi.Cut(m.text("artifactType"), maxTypeName), RunID: e.RunID,
		NodeID: nodeOf(e, m), CreatedAt: store.Time(e.OccurredAt), Summary: abi.Cut(m.text("summary"), maxSummary),
		MediaType: abi.Cut(m.text("mediaType"), maxTypeName), Size: m.integer("size"), Digest: abi.Cut(m.text("digest"), maxTypeName),
	})
}
