package run

import (
	"log/slog"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// The most that a browser adds to a timeline: of its actions all, then failures and
// a count now and then; of refused requests no more, and of each other
// kind, which a guest can ask for as fast as it likes, as many as of actions.
const (
	allActions  = 1000
	actionCount = 100
	mostDenials = 200
)

const (
	eventAction = "run.browser_action"
	eventDenied = "run.browser_egress_denied"
)

// browserEvent records what the binding says happened. A page may have a say in
// hosts and roles, so the canary looks at all of it.
func (r *run) browserEvent(typ, status string, d data) {
	if !strings.HasPrefix(typ, "run.browser_") && !strings.HasPrefix(typ, "run.stream_") {
		slog.Error("the browser recorded an event of another kind", "run", r.id, "type", typ)
		return
	}
	b := &r.browser
	b.counts[typ]++
	n := b.counts[typ]
	switch {
	case typ == eventDenied && n > mostDenials:
		return
	case typ == eventAction && n > allActions:
		if n%actionCount == 0 {
			r.recordBrowser(typ, abi.Succeeded, data{"actions": n})
		}
		if status != abi.Failed {
			return
		}
	case n > allActions:
		return
	}
	r.recordBrowser(typ, status, d)
}

func (r *run) recordBrowser(typ, status string, d data) {
	e := r.event(typ, status, cloneData(d))
	e.Data = r.canary.JSON(e.Data)
	r.submit(&store.Commit{Events: []store.Event{e}}, nil)
}

// cloneData copies a payload that somebody else made.
func cloneData(d data) data {
	out := make(data, len(d)+1)
	for name, v := range d {
		out[name] = v
	}
	return out
}

// sealedTyped is R164 for values that were typed into a page.
func (r *run) sealedTyped(field, origin, placement string) {
	key := field + "\x00" + origin + "\x00" + placement
	if r.browser.used[key] {
		return
	}
	r.browser.used[key] = true
	e := r.event("run.sealed_value_used", "succeeded", data{"field": field, "origin": origin, "placement": placement})
	r.submit(&store.Commit{Events: []store.Event{e}}, nil)
}

// leftArtifact registers a file that the run leaves to its owner. What
// it is and how to know it again stands in the log, which alone says what there is;
// the file lies where its type has its files.
func (r *run) leftArtifact(a BrowserArtifact) {
	r.submit(&store.Commit{Events: []store.Event{r.event("artifact.created", "succeeded", data{
		"artifactId": newULID("art_", time.Now()), "artifactType": a.Type, "nodeId": r.plan.manifest.Node(), "version": 1,
		"summary": a.Summary, "mediaType": a.MediaType, "size": a.Size, "digest": a.Digest,
	})}}, nil)
}

// hostProgress is progress that no connector reported.
func (r *run) hostProgress(message string) {
	e := r.event("run.progress_reported", "in_progress", data{"message": redact.Progress(r.canary.Text(message)), "origin": "host"})
	r.submit(&store.Commit{Events: []store.Event{e}}, nil)
}
