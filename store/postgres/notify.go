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

// First byte of a notification. It is only a wake-up, after which the receiver reads the store.
const (
	tellRun     = "r" // followed by the id of the run
	tellKind    = "d" // followed by the kind of the document
	tellMembers = "m"
	tellProbe   = "p" // followed by a number; of a host to itself
)

// tellBytes bounds one payload. The server's limit is 8000 bytes.
const tellBytes = 7000

// news holds the wake-ups that are still to be sent to other hosts, without duplicates.
type news struct {
	ready  chan struct{} // capacity 1
	others atomic.Bool   // there may be other members

	mu   sync.Mutex // guards said
	said map[string]bool
}

// init assumes that there are other members until that is known.
func (n *news) init() {
	n.others.Store(true)
	n.ready, n.said = make(chan struct{}, 1), map[string]bool{}
}

// tell schedules a wake-up of the other hosts. It is called after a commit and never blocks. NOTIFY is not part of
// transactions with data, because it takes a lock of the whole server.
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

// wrote wakes those who wait for documents of the kinds written, on this host and others.
func (s *db) wrote(writes []store.Write) {
	for _, w := range writes {
		s.kinds.Wake(map[store.RunID]bool{store.RunID(w.Kind): true})
		s.tell(tellKind + string(w.Kind))
	}
}

// Changed implements store.Members.
func (s *db) Changed(kind store.Kind) (wake <-chan struct{}, stop func()) {
	if kind == "" {
		kind = tellMembers // no document kind, because those are longer
	}
	return s.kinds.Watch(store.RunID(kind))
}

func (s *db) channel() string {
	return fmt.Sprintf("sluice_%x", uint64(s.lock("channel", ""))) // #nosec G115 -- any number will do
}

// take moves the news into payloads, each beginning with the sender.
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

// notify sends news on a connection of its own. News that arrive meanwhile are sent together. A connection may have
// broken since it was used last, so they are tried on a new one too. News that cannot be sent are lost; other hosts then
// find out by polling.
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
		used, payloads := c != nil, s.news.take(s.opts.Self.Epoch)
		err := s.send(ctx, &c, payloads)
		if err != nil && used {
			err = s.send(ctx, &c, payloads)
		}
		cancel()
		if err != nil {
			s.rest()
		}
	}
}

// send sends payloads on a connection, which it opens if there is none and closes if it breaks.
func (s *db) send(ctx context.Context, c **pgx.Conn, payloads []string) (err error) {
	if *c == nil {
		if *c, err = pgx.ConnectConfig(ctx, s.address.config.Copy()); err != nil {
			*c = nil
			return err
		}
	}
	for _, payload := range payloads {
		if _, err := (*c).Exec(ctx, "select pg_notify($1, $2)", s.channel(), payload); err != nil {
			end(*c)
			*c = nil
			return err
		}
	}
	return nil
}

// rest waits a moment after a connection failed.
func (s *db) rest() {
	select {
	case <-time.After(500 * time.Millisecond):
	case <-s.ending:
	case <-s.removed:
	}
}

// listen receives the notifications of other hosts. After reconnecting it wakes everybody, because notifications may
// have been missed.
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
	defer s.ear.open.Store(false)
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

// heard wakes those who wait for what a payload names. Only users of this database can send one, and all it causes is a
// read of the store.
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
