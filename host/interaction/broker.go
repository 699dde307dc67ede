// Package interaction brings together the questions of runs and the answers of their
// owner.
//
// A run asks through Broker.Ask and an owner answers through Broker.Answer, however
// the answer was brought. Between the two an answer is a box that only the asking
// run can open: the broker itself keeps no answer, and nothing of one is in
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

// Store is what the broker reads.
type Store interface {
	Run(ctx context.Context, id store.RunID) (store.Run, error)
	Pending(ctx context.Context, id store.RunID) ([]store.Interaction, error)
	Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error)
	Watch(id store.RunID) (wake <-chan struct{}, stop func())
}

// A Broker is the owner of every run of a process. It is safe for concurrent use. It starts no
// goroutines, and an open question takes well under a kilobyte beside its own text.
type Broker struct {
	store Store

	mu     sync.Mutex // guards the fields below and what they refer to; never held across I/O
	runs   map[store.RunID]*runState
	closed bool
}

var (
	_ run.LiveOwner = (*Broker)(nil)
	_ run.Settler   = (*Broker)(nil)
)

// New returns a broker without questions.
func New(st Store) *Broker { return &Broker{store: st, runs: map[store.RunID]*runState{}} }

// A runState is the broker's state of one run, from its first question or assistance until Forget.
type runState struct {
	question *question // the open question; may be nil
	// unsettled holds the questions whose outcome is unknown, by id: the open one, and any before
	// it whose answer is not durable yet.
	unsettled map[string]*question
	// answered holds the ids of questions that an owner answered.
	//
	// Invariant: no more than a run may ask (limits.interactions_per_run).
	answered      map[string]struct{}
	assistances   map[string]run.LiveAssistance
	allowTimeOuts bool          // an owner may answer with timeout
	arrival       chan struct{} // closed when a question arrives; nil if nobody waits
}

// A question is one call of Ask.
type question struct {
	run.Question
	public   []byte            // public key that seals answers
	answers  chan sealedAnswer // receives the first answer
	answered bool              // an answer was sent to answers
	// settled is closed once the outcome of that answer is known; accepted then says whether it ended
	// the question. It is nil until answered.
	settled  chan struct{}
	done     bool
	accepted bool
}

// A sealedAnswer answer is on its way to the run.
type sealedAnswer struct {
	status string
	by     string
	box    []byte
}

// state returns the state of a run, creating it if necessary. The caller holds mu.
func (d *Broker) state(id store.RunID) *runState {
	s := d.runs[id]
	if s == nil {
		s = &runState{unsettled: map[string]*question{}}
		d.runs[id] = s
	}
	return s
}

// AllowTimeOuts lets the owner of a run answer with timeout, to test how its connector handles
// that.
func (d *Broker) AllowTimeOuts(id store.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state(id).allowTimeOuts = true
}

func (d *Broker) timeOuts(id store.RunID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	return s != nil && s.allowTimeOuts
}

// Ask implements run.Owner. It creates the key that opens the answer, which does not outlive the
// call.
func (d *Broker) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	k, err := newKey()
	if err != nil {
		return host.Answer{}, err
	}
	defer k.erase()
	asked := d.open(q, k.public)
	select {
	case b := <-asked.answers:
		return d.deliver(asked, k, b)
	case <-ctx.Done():
		d.withdraw(asked)
		return host.Answer{}, ctx.Err()
	}
}

// open registers a question. The previous one is closed, or the run would not ask.
func (d *Broker) open(q run.Question, public []byte) *question {
	asked := &question{Question: q, public: public, answers: make(chan sealedAnswer, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state(store.RunID(q.RunID))
	s.question, s.unsettled[q.InteractionID] = asked, asked
	if s.arrival != nil {
		close(s.arrival)
		s.arrival = nil
	}
	return asked
}

// Settled implements run.Settler. Only the first call for a question counts.
func (d *Broker) Settled(id store.RunID, interactionID string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return
	}
	if asked := s.unsettled[interactionID]; asked != nil {
		d.settleLocked(s, asked, err == nil)
	}
}

// deliver opens the box. The outcome of the answer is reported through Settled.
func (d *Broker) deliver(asked *question, k *key, b sealedAnswer) (host.Answer, error) {
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

// withdraw removes a question that something else closed, and rejects an answer that arrived at the
// same moment.
func (d *Broker) withdraw(asked *question) { d.settle(asked, run.ErrTooLate) }

// settle ends a question for those who answer it. Only the first call counts.
func (d *Broker) settle(asked *question, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[store.RunID(asked.RunID)]
	d.settleLocked(s, asked, err == nil)
}

// settleLocked is settle with mu held. s may be nil.
func (d *Broker) settleLocked(s *runState, asked *question, won bool) {
	if asked.done {
		return
	}
	asked.done, asked.accepted = true, won
	if asked.settled != nil {
		close(asked.settled)
	}
	if s == nil {
		return
	}
	if s.question == asked {
		s.question = nil
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

// Forget removes the state of a run. The run's owner calls it once the run is over.
func (d *Broker) Forget(id store.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetLocked(id)
}

// forgetLocked is Forget with mu held.
func (d *Broker) forgetLocked(id store.RunID) {
	s := d.runs[id]
	if s == nil {
		return
	}
	for _, asked := range s.unsettled {
		d.settleLocked(s, asked, false)
	}
	if s.arrival != nil {
		close(s.arrival)
	}
	delete(d.runs, id)
}

// Close refuses answers from now on, including those that wait for a question to be asked again.
func (d *Broker) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for id := range d.runs {
		d.forgetLocked(id)
	}
}

// Waiting returns the number of open questions.
func (d *Broker) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, s := range d.runs {
		if s.question != nil {
			n++
		}
	}
	return n
}

// AssistanceOpened implements run.LiveOwner. A run has few open at once.
func (d *Broker) AssistanceOpened(id store.RunID, a run.LiveAssistance) {
	a.Schema, a.Attachments = bytes.Clone(a.Schema), slices.Clone(a.Attachments)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state(id)
	if s.assistances == nil {
		s.assistances = map[string]run.LiveAssistance{}
	}
	s.assistances[a.ID] = a
}

// AssistanceClosed implements run.LiveOwner. It removes the live data of the assistance.
func (d *Broker) AssistanceClosed(id store.RunID, assistance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.runs[id]; s != nil {
		delete(s.assistances, assistance)
	}
}

// Raw returns the connector's words of an open question or assistance, or store.ErrNotFound if
// there is none with that id.
func (d *Broker) Raw(ctx context.Context, id store.RunID, item string) (host.RawAssistance, error) {
	if r, ok := d.rawItem(id, item); ok {
		return r, nil
	}
	open, err := d.store.Pending(ctx, id) // it may not have arrived here yet
	if err != nil {
		return host.RawAssistance{}, fmt.Errorf("list open questions of %s: %w", id, err)
	}
	for _, q := range open {
		if q.ID == item {
			return host.RawAssistance{Message: abi.CleanLines(q.Message), Schema: q.Schema,
				Attachments: []abi.Attachment{}}, nil
		}
	}
	return host.RawAssistance{}, store.ErrNotFound
}

// rawItem returns the words of an open item.
func (d *Broker) rawItem(id store.RunID, item string) (host.RawAssistance, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return host.RawAssistance{}, false
	}
	if q := s.question; q != nil && q.InteractionID == item {
		names := make(map[string]string, len(q.Fields))
		for _, f := range q.Fields {
			names[f.Shown] = f.Name
		}
		return host.RawAssistance{Message: q.RawMessage, Schema: bytes.Clone(q.RawSchema),
			Attachments: []abi.Attachment{}, Fields: names, Page: pageOf(q.Page)}, true
	}
	if a, ok := s.assistances[item]; ok {
		return host.RawAssistance{Message: a.Message, Schema: bytes.Clone(a.Schema), Attachments: append([]abi.Attachment{}, a.Attachments...)},
			true
	}
	return host.RawAssistance{}, false
}

func pageOf(p run.Page) *host.OpenPage {
	if p.Host == "" {
		return nil
	}
	return &host.OpenPage{Title: p.Title, URLHost: p.Host}
}
