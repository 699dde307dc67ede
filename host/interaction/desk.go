// Package interaction is the desk where the questions of runs meet the answers
// of their owner.
//
// A run asks through Desk.Ask and an owner answers through Desk.Answer, however
// the answer was brought. Between the two an answer is a box that only the asking
// run can open: the desk itself keeps no answer, and nothing of one is in
// the store, a log or an error.
//
// Trust: questions are a connector's words, already bounded by the protocol;
// answers are a stranger's until they passed the checks of run.Question.
package interaction

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/abi"
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

	mu     sync.Mutex // guards what follows and what hangs on it; never held across I/O
	runs   map[store.RunID]*seat
	closed bool
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
	timeOuts bool          // an owner may answer with timeout
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

// AllowTimeOuts lets the owner of a run answer with timeout, to try what its connector
// makes of it.
func (d *Desk) AllowTimeOuts(id store.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at(id).timeOuts = true
}

func (d *Desk) timeOuts(id store.RunID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	return s != nil && s.timeOuts
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
	d.forget(id)
}

// forget is Forget for who holds mu.
func (d *Desk) forget(id store.RunID) {
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

// Close refuses answers from now on, also those that wait for a question that is asked again.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for id := range d.runs {
		d.forget(id)
	}
}

// Waiting returns how many questions are open.
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

// AssistanceOpened implements run.Desk. A run has few open at once.
func (d *Desk) AssistanceOpened(id store.RunID, a run.LiveAssistance) {
	a.Schema, a.Attachments = bytes.Clone(a.Schema), slices.Clone(a.Attachments)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.at(id)
	if s.live == nil {
		s.live = map[string]run.LiveAssistance{}
	}
	s.live[a.ID] = a
}

// AssistanceClosed implements run.Desk. What was live of it is gone.
func (d *Desk) AssistanceClosed(id store.RunID, assistance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.runs[id]; s != nil {
		delete(s.live, assistance)
	}
}

// Raw returns the words of an open question or assistance; store.ErrNotFound
// when there is none of that id.
func (d *Desk) Raw(ctx context.Context, id store.RunID, item string) (host.RawAssistance, error) {
	if r, ok := d.held(id, item); ok {
		return r, nil
	}
	open, err := d.store.Pending(ctx, id) // it may be on its way here
	if err != nil {
		return host.RawAssistance{}, fmt.Errorf("list open questions of %s: %w", id, err)
	}
	for _, q := range open {
		if q.ID == item {
			return host.RawAssistance{Message: abi.CleanLines(q.Message), Schema: q.Schema, Attachments: []host.LiveAttachment{}}, nil
		}
	}
	return host.RawAssistance{}, store.ErrNotFound
}

// held returns what lies on the desk.
func (d *Desk) held(id store.RunID, item string) (host.RawAssistance, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return host.RawAssistance{}, false
	}
	if q := s.asked; q != nil && q.InteractionID == item {
		names := make(map[string]string, len(q.Fields))
		for _, f := range q.Fields {
			names[f.Shown] = f.Name
		}
		return host.RawAssistance{Message: q.RawMessage, Schema: bytes.Clone(q.RawSchema), Attachments: []host.LiveAttachment{}, Fields: names, Page: pageOf(q.Page)}, true
	}
	if a, ok := s.live[item]; ok {
		return host.RawAssistance{Message: a.Message, Schema: bytes.Clone(a.Schema), Attachments: attachments(a.Attachments)}, true
	}
	return host.RawAssistance{}, false
}

func pageOf(p run.Page) *host.OpenPage {
	if p.Host == "" {
		return nil
	}
	return &host.OpenPage{Title: p.Title, URLHost: p.Host}
}

// attachments returns those of an item, with their targets.
func attachments(in []abi.Attachment) []host.LiveAttachment {
	out := make([]host.LiveAttachment, 0, len(in))
	for _, a := range in {
		out = append(out, host.LiveAttachment(a))
	}
	return out
}
