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
func (br *browsing) browserEvent(typ, status string, d data) {
	if !strings.HasPrefix(typ, "run.browser_") && !strings.HasPrefix(typ, "run.stream_") {
		slog.Error("the browser recorded an event of another kind", "run", br.id, "type", typ)
		return
	}
	b := br
	b.counts[typ]++
	n := b.counts[typ]
	switch {
	case typ == eventDenied && n > mostDenials:
		return
	case typ == eventAction && n > allActions:
		if n%actionCount == 0 {
			br.recordBrowser(typ, abi.Succeeded, data{"actions": n})
		}
		if status != abi.Failed {
			return
		}
	case n > allActions:
		return
	}
	br.recordBrowser(typ, status, d)
}

func (br *browsing) recordBrowser(typ, status string, d data) {
	e := br.journal.event(typ, status, cloneData(d))
	e.Data = br.canary.JSON(e.Data)
	br.commits.submit(&store.Commit{Events: []store.Event{e}}, nil)
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
func (br *browsing) sealedTyped(field, origin, placement string) {
	key := field + "\x00" + origin + "\x00" + placement
	if br.used[key] {
		return
	}
	br.used[key] = true
	e := br.journal.event("run.sealed_value_used", "succeeded", data{"field": field, "origin": origin, "placement": placement})
	br.commits.submit(&store.Commit{Events: []store.Event{e}}, nil)
}

// leftArtifact registers a file that the run leaves to its owner. What
// it is and how to know it again stands in the log, which alone says what there is;
// the file lies where its type has its files.
func (br *browsing) leftArtifact(a BrowserArtifact) {
	br.commits.submit(&store.Commit{Events: []store.Event{br.journal.event("artifact.created", "succeeded", data{
		"artifactId": newULID("art_", time.Now()), "artifactType": a.Type, "nodeId": br.plan.manifest.Node(), "version": 1,
		"summary": a.Summary, "mediaType": a.MediaType, "size": a.Size, "digest": a.Digest,
	})}}, nil)
}

// hostProgress is progress that no connector reported.
func (br *browsing) hostProgress(message string) {
	e := br.journal.event("run.progress_reported", "in_progress", data{"message": redact.Progress(br.canary.Text(message)), "origin": "host"})
	br.commits.submit(&store.Commit{Events: []store.Event{e}}, nil)
}
