package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// What is told begins with what it is about. It is a wake-up only; whoever hears it reads.
const (
	tellRun     = "r" // and the id of the run
	tellKind    = "d" // and the kind of the document
	tellMembers = "m"
	tellProbe   = "p" // and a number; of a host to itself
)

// tellBytes is what one notification has at most; the server's own bound is 8000.
const tellBytes = 7000

// news are the wake-ups for other hosts that were not sent yet, each once.
type news struct {
	ready  chan struct{} // capacity 1
	others atomic.Bool   // there are other members

	mu   sync.Mutex // guards said
	said map[string]bool
}

// init begins with others: who they are is not known yet.
func (n *news) init() {
	n.others.Store(true)
	n.ready, n.said = make(chan struct{}, 1), map[string]bool{}
}

// tell has the other hosts woken. It is called behind a commit, and never waits: NOTIFY is sent
// outside of the transactions that carry data, since it takes a lock of the whole server.
func (s *db) tell(what string) {
	if !s.news.others.Load() {
		return
	}
	s.news.mu.Lock()
	s.news.said[what] = true
	s.news.mu.Unlock()
	select {
	case s.news.ready <- struct{}{}:
	default:
	}
}

// wrote wakes whoever waits for documents of these kinds, here and elsewhere.
func (s *db) wrote(writes []store.Write) {
	for _, w := range writes {
		s.kinds.Wake(map[store.RunID]bool{store.RunID(w.Kind): true})
		s.tell(tellKind + string(w.Kind))
	}
}

// Changed implements store.Members.
func (s *db) Changed(kind store.Kind) (wake <-chan struct{}, stop func()) {
	if kind == "" {
		kind = tellMembers // is no kind: those are longer
	}
	return s.kinds.Watch(store.RunID(kind))
}

func (s *db) channel() string {
	return fmt.Sprintf("sluice_%x", uint64(s.lock("channel", ""))) // #nosec G115 -- any number will do
}

// take empties the news into payloads, which begin with who sends them.
func (n *news) take(from string) (payloads []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	for what := range n.said {
		if b.Len()+len(what) >= tellBytes {
			payloads = append(payloads, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(from + " ")
		}
		b.WriteString(what + " ")
	}
	clear(n.said)
	if b.Len() > 0 {
		payloads = append(payloads, b.String())
	}
	return payloads
}

// notify sends news, on a connection of its own. What is told meanwhile goes together; what
// cannot be sent is found by whoever looks.
func (s *db) notify() {
	var c *pgx.Conn
	defer func() {
		if c != nil {
			end(c)
		}
	}()
	for {
		select {
		case <-s.ending:
			return
		case <-s.removed:
			return
		case <-s.news.ready:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var err error
		if c == nil || c.IsClosed() {
			c, err = pgx.ConnectConfig(ctx, s.address.config.Copy())
		}
		for _, payload := range s.news.take(s.opts.Self.Epoch) {
			if err == nil {
				_, err = c.Exec(ctx, "select pg_notify($1, $2)", s.channel(), payload)
			}
		}
		cancel()
		if err != nil {
			s.rest()
		}
	}
}

// rest waits a moment behind a connection that failed.
func (s *db) rest() {
	select {
	case <-time.After(500 * time.Millisecond):
	case <-s.ending:
	case <-s.removed:
	}
}

// listen hears what other hosts tell. Behind a connection that broke it wakes everybody, since
// nobody knows what was missed.
func (s *db) listen() {
	for {
		select {
		case <-s.ending:
			return
		case <-s.removed:
			return
		default:
		}
		if err := s.hear(); err != nil {
			s.rest()
		}
	}
}

func (s *db) hear() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.ending:
		case <-s.removed:
		case <-ctx.Done():
		}
		cancel()
	}()
	c, err := pgx.ConnectConfig(ctx, s.address.config.Copy())
	if err != nil {
		return err
	}
	defer end(c)
	if _, err := c.Exec(ctx, "listen "+s.channel()); err != nil {
		return err
	}
	s.WakeAll()
	s.kinds.WakeAll()
	s.ear.listening()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if from, what, _ := strings.Cut(n.Payload, " "); from != s.opts.Self.Epoch {
			s.heard(what)
		} else {
			s.ear.hear(what)
		}
	}
}

// heard wakes who waits for what a payload is about. Only hosts of this database can send one,
// and no more comes of it than a look at the store.
func (s *db) heard(payload string) {
	runs, kinds := map[store.RunID]bool{}, map[store.RunID]bool{}
	for what := range strings.FieldsSeq(payload) {
		switch what[:1] {
		case tellRun:
			runs[store.RunID(what[1:])] = true
		case tellKind:
			kinds[store.RunID(what[1:])] = true
		case tellMembers:
			s.kinds.WakeAll()
		}
	}
	s.Wake(runs)
	s.kinds.Wake(kinds)
}
