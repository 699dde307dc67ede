package webhook

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A lane is the position of one webhook in one run's log. If it is stored, the events before Next were delivered, given
// up, or not wanted.
type lane struct {
	Run store.RunID `json:"-"` // part of the document's id
	// Started is when the run started.
	Started time.Time `json:"started"`
	// Next is the sequence number of the first event that has not been dealt with.
	Next uint64 `json:"next"`
	// Attempts counts the failed attempts for the wanted event at or after Next. The next one is made at Due.
	Attempts int       `json:"attempts,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	// Done means that the run is over and everything is delivered. The lane stays until scans no longer find its run.
	Done bool `json:"done,omitempty"`
}

// laneID returns the document id of a lane, WEBHOOK/RUN of kind store.Deliveries. WEBHOOK alone is the id of the
// webhook's horizon.
func laneID(webhook string, run store.RunID) string { return webhook + "/" + string(run) }

func (l lane) write(webhook string) store.Write {
	b, _ := json.Marshal(l) // strings, numbers and times always encode
	return store.Write{Kind: store.Deliveries, ID: laneID(webhook, l.Run), Data: b}
}

// A horizon says how far the scan for runs has come: runs that started before it have a lane, or are over and dealt
// with.
type horizon struct {
	At time.Time `json:"at"`
}

func (h horizon) write(webhook string) store.Write {
	b, _ := json.Marshal(h)
	return store.Write{Kind: store.Deliveries, ID: webhook, Data: b}
}

// owner splits the id of a document of kind store.Deliveries.
func owner(id string) (webhook string, run store.RunID) {
	w, r, _ := strings.Cut(id, "/")
	return w, store.RunID(r)
}

// delays are the waits after each failed attempt. An event is given up after the attempt that follows the last one.
var delays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// delay returns the wait after the given number of failed attempts, up to a tenth longer than in delays, or false if
// there should be no further attempt.
func delay(attempts int) (time.Duration, bool) {
	if attempts > len(delays) {
		return 0, false
	}
	d := delays[attempts-1]
	return d + rand.N(d/10), true // #nosec G404 -- jitter, not a secret
}
