package api

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// artifactAPI has the routes of the files that runs left.
type artifactAPI struct {
	find      lookup
	artifacts host.Artifacts
	streams   *stream.Hub
	audit     host.AuditLog
	places    *exportSlots
	log       *slog.Logger
}

func (a *artifactAPI) routes() []route {
	all := "/v1/runs/:runId/artifacts"
	return documented("api.md#artifacts-and-debug-bundle", []route{
		{Route: web.Route{Method: "GET", Path: all, Scope: access.ArtifactsRead, Handle: found(a.listArtifacts)},
			summary: "The files that a run left and that are still kept, oldest first",
			answer:  web.List[timeline.Artifact]{}},
		{Route: web.Route{Method: "GET", Path: all + "/:artifactId", Scope: access.ArtifactsRead,
			Handle: found(a.artifact)},
			summary: "What is known of a file that a run left", answer: timeline.Artifact{}},
		{Route: web.Route{Method: "GET", Path: all + "/:artifactId/content", Scope: access.ArtifactsRead,
			Handle: a.artifactContent},
			summary: "The file, as an attachment", media: "application/zip"},
	})
}

// storedArtifacts returns the artifacts of the run in the path whose files are kept.
func (a *artifactAPI) storedArtifacts(c *fiber.Ctx) (kept []timeline.Artifact, err error) {
	r, err := a.find.run(c)
	if err != nil {
		return nil, err
	}
	var all []timeline.Artifact
	ctx := web.Context(c)
	if err := a.streams.Fold(ctx, r.ID, func(_ store.Run, f *timeline.Fold) { all = f.Artifacts() }); err != nil {
		return nil, err
	}
	kept = []timeline.Artifact{}
	for _, x := range all {
		there, err := host.KeptArtifact(ctx, a.artifacts, r.ID, x.ArtifactType, x.Size)
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

// artifact returns the artifact in the path. One whose file is gone counts as not found.
func (a *artifactAPI) artifact(c *fiber.Ctx) (timeline.Artifact, error) {
	id, err := web.ID(c, "artifactId")
	if err != nil {
		return timeline.Artifact{}, err
	}
	all, err := a.storedArtifacts(c)
	if err != nil {
		return timeline.Artifact{}, err
	}
	i := slices.IndexFunc(all, func(x timeline.Artifact) bool { return x.ArtifactID == id })
	if i < 0 {
		return timeline.Artifact{}, web.NotFound()
	}
	return all[i], nil
}

func (a *artifactAPI) listArtifacts(c *fiber.Ctx) (web.List[timeline.Artifact], error) {
	all, err := a.storedArtifacts(c)
	return web.List[timeline.Artifact]{Data: all}, err
}

// artifactContent streams the file. As for an export, the audit log has it before the first byte is
// sent.
func (a *artifactAPI) artifactContent(c *fiber.Ctx) (err error) {
	x, err := a.artifact(c)
	if err != nil {
		return err
	}
	leave, err := a.places.acquire(web.Principal(c).ID)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	content, _, err := a.artifacts.OpenArtifact(web.Context(c), x.RunID, x.ArtifactType)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = content.Close() // read only
		}
	}()
	if err := checkUnchanged(content, x); err != nil {
		return err
	}
	details := map[string]string{"code": x.ArtifactType, "digest": x.Digest}
	if err := a.audit.Audit(web.Context(c), "artifact.read", string(x.RunID), "done", details); err != nil {
		return err
	}
	web.Attachment(c, x.MediaType, export.FileName(x.ArtifactType+"-"+string(x.RunID))+".zip")
	c.Set(fiber.HeaderETag, `"`+x.Digest+`"`)
	id, recheck := web.RequestID(c), web.Recheck(c)
	return web.Stream(c, x.MediaType, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
		defer leave()
		defer content.Close()
		from := &recheckingReader{Reader: content, ctx: ctx, check: recheck, next: time.Now().Add(recheckEvery)}
		if _, err := io.CopyN(&pacedWriter{w: w, conn: conn}, from, x.Size); err != nil {
			// Without the last chunk the client sees that the content is incomplete.
			_ = conn.Close()
			if ctx.Err() == nil {
				a.log.Warn("artifact_broken_off", slog.String("request", id), slog.String("error", err.Error()))
			}
		}
	})
}

// checkUnchanged refuses a file that differs from what the run left, before any of it is sent. It
// rewinds the file.
func checkUnchanged(file io.ReadSeeker, x timeline.Artifact) error {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(file, x.Size+1))
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	if n != x.Size || "sha256:"+hex.EncodeToString(sum.Sum(nil)) != x.Digest {
		return web.NewProblem(0, "conflict", "The file is not what the run left: it was changed.")
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// A recheckingReader reads for as long as its principal may.
type recheckingReader struct {
	io.Reader
	ctx   context.Context
	check func(context.Context) error
	next  time.Time
}

func (l *recheckingReader) Read(b []byte) (int, error) {
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
