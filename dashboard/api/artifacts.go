package api

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/dashboard/access"
	"github.com/sluicehost/sluice/dashboard/control"
	"github.com/sluicehost/sluice/dashboard/export"
	"github.com/sluicehost/sluice/dashboard/timeline"
	"github.com/sluicehost/sluice/dashboard/web"
	"github.com/sluicehost/sluice/store"
)

// artifactRoutes are A84 and A85, and beside them the list of what there is and its
// content.
func (a *API) artifactRoutes() []route {
	all := "/v1/runs/:runId/artifacts"
	return []route{
		{Route: web.Route{Method: "GET", Path: all, Scope: access.ArtifactsRead, Handle: a.listArtifacts},
			see: "api.md#artifacts-and-debug-bundle", summary: "The files that a run left and that are still kept, oldest first", answer: web.List[timeline.Artifact]{}},
		{Route: web.Route{Method: "GET", Path: all + "/:artifactId", Scope: access.ArtifactsRead, Handle: a.getArtifact},
			see: "api.md#artifacts-and-debug-bundle", summary: "What is known of a file that a run left", answer: timeline.Artifact{}},
		{Route: web.Route{Method: "GET", Path: all + "/:artifactId/content", Scope: access.ArtifactsRead, Handle: a.artifactContent},
			see: "api.md#artifacts-and-debug-bundle", summary: "The file, as an attachment", media: "application/zip"},
		{Route: web.Route{Method: "GET", Path: "/v1/runs/:runId/debug-bundle", Scope: access.RunsRead, Handle: a.debugBundle},
			see: "api.md#artifacts-and-debug-bundle", summary: "Everything about a run that may be shown, in one document", answer: bundle{}, codes: []string{"events_expired"}},
	}
}

// artifacts are those of the run in the path whose files are kept.
func (a *API) artifacts(c *fiber.Ctx) (kept []timeline.Artifact, err error) {
	r, err := a.run(c)
	if err != nil {
		return nil, err
	}
	var all []timeline.Artifact
	ctx := web.Context(c)
	if err := a.Streams.Fold(ctx, r.ID, func(_ store.Run, f *timeline.Fold) { all = f.Artifacts() }); err != nil {
		return nil, err
	}
	kept = []timeline.Artifact{}
	for _, x := range all {
		there, err := control.KeptArtifact(ctx, a.Host, r.ID, x.ArtifactType, x.Size)
		if err != nil {
			return nil, err
		}
		if there {
			x.RunID, x.ContentURL = r.ID, "/v1/runs/"+string(r.ID)+"/artifacts/"+x.ArtifactID+"/content"
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// artifact is the one that the path names. One whose file is gone is like one that
// never was.
func (a *API) artifact(c *fiber.Ctx) (timeline.Artifact, error) {
	id, err := web.ID(c, "artifactId")
	if err != nil {
		return timeline.Artifact{}, err
	}
	all, err := a.artifacts(c)
	if err != nil {
		return timeline.Artifact{}, err
	}
	i := slices.IndexFunc(all, func(x timeline.Artifact) bool { return x.ArtifactID == id })
	if i < 0 {
		return timeline.Artifact{}, web.NotFound()
	}
	return all[i], nil
}

func (a *API) listArtifacts(c *fiber.Ctx) error {
	all, err := a.artifacts(c)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, web.List[timeline.Artifact]{Data: all})
}

func (a *API) getArtifact(c *fiber.Ctx) error {
	x, err := a.artifact(c)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, x)
}

// artifactContent streams the file (A38). That it was given away is written down
// before its first byte leaves, as for an export (A168).
func (a *API) artifactContent(c *fiber.Ctx) (err error) {
	x, err := a.artifact(c)
	if err != nil {
		return err
	}
	leave, err := a.exports.enter(web.Principal(c).ID)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	content, _, err := a.Host.OpenArtifact(web.Context(c), x.RunID, x.ArtifactType)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = content.Close() // read only
		}
	}()
	details := map[string]string{"code": x.ArtifactType, "digest": x.Digest}
	if err := a.Host.Audit(web.Context(c), web.Who(c), "artifact.read", string(x.RunID), "done", details); err != nil {
		return err
	}
	web.Attachment(c, x.MediaType, export.FileName(x.ArtifactType+"-"+string(x.RunID))+".zip")
	c.Set(fiber.HeaderETag, `"`+x.Digest+`"`)
	id, recheck := web.RequestID(c), web.Recheck(c)
	return web.Stream(c, x.MediaType, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
		defer leave()
		defer content.Close()
		from := &lasting{Reader: content, ctx: ctx, check: recheck, next: time.Now().Add(recheckEvery)}
		if err := sendWhole(&paced{w: w, conn: conn}, from, x); err != nil {
			// No clean end: who reads must see that this is not all of it.
			_ = conn.Close()
			if ctx.Err() == nil {
				a.Log.Warn("artifact_broken_off", slog.String("request", id), slog.String("error", err.Error()))
			}
		}
	})
}

var errArtifact = errors.New("the file is not what the log says it was")

// pieceSize is how much of a file is sent at once.
const pieceSize = 256 << 10

// sendWhole sends a file. One that is not what the run left is an error before its
// end is sent.
func sendWhole(to io.Writer, from io.Reader, x timeline.Artifact) error {
	sum := sha256.New()
	left := x.Size
	for piece := make([]byte, pieceSize); left > 0; {
		n, err := io.ReadFull(from, piece[:min(left, pieceSize)])
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		_, _ = sum.Write(piece[:n])
		if left -= int64(n); left == 0 && "sha256:"+hex.EncodeToString(sum.Sum(nil)) != x.Digest {
			return errArtifact
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return err
		}
	}
	return nil
}

// lasting reads for as long as its reader may (A29).
type lasting struct {
	io.Reader
	ctx   context.Context
	check func(context.Context) error
	next  time.Time
}

func (l *lasting) Read(b []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if now := time.Now(); now.After(l.next) {
		if err := l.check(l.ctx); err != nil {
			return 0, fmt.Errorf("check reader: %w", err)
		}
		l.next = now.Add(recheckEvery)
	}
	return l.Reader.Read(b)
}
