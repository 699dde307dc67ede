package interaction

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Store is what the desk reads.
type Store interface {
	Run(ctx context.Context, id store.RunID) (store.Run, error)
	Pending(ctx context.Context, id store.RunID) ([]store.Interaction, error)
	Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error)
	Watch(id store.RunID) (wake <-chan struct{}, stop func())
}

// A Desk is the owner of every run of a process. All methods may be called
// concurrently. It starts no goroutine, and an open question costs it well
// under a kilobyte beside the question's own text.
type Desk struct {
	store Store

	mu   sync.Mutex // guards runs and what hangs on it; never held across I/O
	runs map[store.RunID]*seat
}

var (
	_ run.Desk    = (*Desk)(nil)
	_ run.Settler = (*Desk)(nil)
)

// New makes a desk.
func New(st Store) *Desk { return &Desk{store: st, runs: map[store.RunID]*seat{}} }

// A seat is what the desk knows of one run, from its first question or
// assistance to Forget.
type seat struct {
	asked *question // what it asks; nil for nothing
	// unsettled are questions whose fate is not known, by id: the one that is asked, and
	// any before it whose answer is on its way to the disk.
	unsettled map[string]*question
	// answered are the ids of questions that an owner answered.
	//
	// Invariant: no more than a run may ask (limits.interactions_per_run).
	answered map[string]struct{}
	live     map[string]run.LiveAssistance
	arrival  chan struct{} // closed when a question arrives; nil when nobody waits for one
}

// A question is one call of Ask.
type question struct {
	run.Question
	public []byte     // seals answers
	boxes  chan boxed // takes the one that is first
	taken  bool       // an answer was put into boxes
	// settled is closed once the fate of that answer is known; then won says
	// whether it was the end of the question. Nil until taken.
	settled chan struct{}
	done    bool
	won     bool
}

// boxed is an answer on its way to the run.
type boxed struct {
	status string
	by     string
	box    []byte
}

// at returns the seat of a run. The caller holds mu.
func (d *Desk) at(id store.RunID) *seat {
	s := d.runs[id]
	if s == nil {
		s = &seat{unsettled: map[string]*question{}}
		d.runs[id] = s
	}
	return s
}

// Ask implements run.Owner. The key that opens the answer is made here and does
// not outlive the call.
func (d *Desk) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	k, err := newKey()
	if err != nil {
		return host.Answer{}, err
	}
	defer k.erase()
	asked := d.open(q, k.public)
	select {
	case b := <-asked.boxes:
		return d.deliver(asked, k, b)
	case <-ctx.Done():
		d.withdraw(asked)
		return host.Answer{}, ctx.Err()
	}
}

// open lays a question on the desk. The one before it is closed, or the run
// would not ask.
func (d *Desk) open(q run.Question, public []byte) *question {
	asked := &question{Question: q, public: public, boxes: make(chan boxed, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.at(store.RunID(q.RunID))
	s.asked, s.unsettled[q.InteractionID] = asked, asked
	if s.arrival != nil {
		close(s.arrival)
		s.arrival = nil
	}
	return asked
}

// Settled implements run.Settler. Only the first call for a question counts.
func (d *Desk) Settled(id store.RunID, interactionID string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return
	}
	if asked := s.unsettled[interactionID]; asked != nil {
		d.close(s, asked, err == nil)
	}
}

// deliver opens the box. What becomes of the answer is told through Settled.
func (d *Desk) deliver(asked *question, k *key, b boxed) (host.Answer, error) {
	a := host.Answer{RunID: store.RunID(asked.RunID), InteractionID: asked.InteractionID, Status: b.status, By: b.by}
	if b.box != nil {
		plain, err := k.open(b.box, asked.Question)
		if err == nil {
			a.Data, err = unpack(plain)
		}
		if err != nil {
			d.settle(asked, err)
			return host.Answer{}, err
		}
	}
	return a, nil
}

// withdraw takes a question back that something else closed, and tells an answer
// that came in the same moment.
func (d *Desk) withdraw(asked *question) { d.settle(asked, run.ErrTooLate) }

// settle ends a question for those who answer it. Only the first call counts.
func (d *Desk) settle(asked *question, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[store.RunID(asked.RunID)]
	d.close(s, asked, err == nil)
}

// close is settle for who holds mu; s may be nil.
func (d *Desk) close(s *seat, asked *question, won bool) {
	if asked.done {
		return
	}
	asked.done, asked.won = true, won
	if asked.settled != nil {
		close(asked.settled)
	}
	if s == nil {
		return
	}
	if s.asked == asked {
		s.asked = nil
	}
	if s.unsettled[asked.InteractionID] == asked {
		delete(s.unsettled, asked.InteractionID)
	}
	if won {
		if s.answered == nil {
			s.answered = map[string]struct{}{}
		}
		s.answered[asked.InteractionID] = struct{}{}
	}
}

// Forget erases what is known of a run. Whoever runs it calls this once it is
// over.
func (d *Desk) Forget(id store.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return
	}
	for _, asked := range s.unsettled {
		d.close(s, asked, false)
	}
	if s.arrival != nil {
		close(s.arrival)
	}
	delete(d.runs, id)
}

// Waiting is how many questions are open.
func (d *Desk) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, s := range d.runs {
		if s.asked != nil {
			n++
		}
	}
	return n
}
