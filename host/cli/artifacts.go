package cli

import (
	"context"
	"errors"
	"io"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// traceType is the type of browser traces among artifacts (A84).
const traceType = "browser-trace"

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
