package webhook

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A lane is where one webhook stands in one run's log. While it is stored, the
// events before Next have been delivered, given up, or were not wanted.
type lane struct {
	Run store.RunID `json:"-"` // part of the document's id
	// Started is when the run did.
	Started time.Time `json:"started"`
	// Next is the sequence of the first event that was not dealt with.
	Next uint64 `json:"next"`
	// Attempts counts the failed attempts to deliver the wanted event at or after
	// Next; the next one is made at Due.
	Attempts int       `json:"attempts,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	// Done: the run is over and nothing is left. The lane stays until the scan for
	// runs no longer finds its run.
	Done bool `json:"done,omitempty"`
}

// A laneID is WEBHOOK/RUN, of kind store.Deliveries. WEBHOOK alone is the
// horizon of the webhook.
func laneID(webhook string, run store.RunID) string { return webhook + "/" + string(run) }

func (l lane) write(webhook string) store.Write {
	b, _ := json.Marshal(l) // strings, numbers and times always encode
	return store.Write{Kind: store.Deliveries, ID: laneID(webhook, l.Run), Data: b}
}

// A horizon says how far the scan for runs has come: runs that started before
// are in a lane, or are over and dealt with.
type horizon struct {
	At time.Time `json:"at"`
}

func (h horizon) write(webhook string) store.Write {
	b, _ := json.Marshal(h)
	return store.Write{Kind: store.Deliveries, ID: webhook, Data: b}
}

// owner of a document of kind store.Deliveries.
func owner(id string) (webhook string, run store.RunID) {
	w, r, _ := strings.Cut(id, "/")
	return w, store.RunID(r)
}

// delays are the waits between attempts: an event is given up after one attempt
// more than there are waits.
var delays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// delay is how long to wait after so many failed attempts, up to a tenth longer
// than the table says; false when there is to be no other.
func delay(attempts int) (time.Duration, bool) {
	if attempts > len(delays) {
		return 0, false
	}
	d := delays[attempts-1]
	return d + rand.N(d/10), true // #nosec G404 -- jitter, not a secret
}
