package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/store"
)

// ErrNoAudit: a store in memory keeps no audit log.
var ErrNoAudit = errors.New("a memory: store keeps no audit log; name another with --store badger:DIR")

// OpenAudit opens the audit log beside a store. It opens no store and takes no
// lock of one.
func OpenAudit(store string) (*audit.Log, error) {
	dir, err := DataDir(store)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, ErrNoAudit
	}
	return audit.Open(dir)
}

// Audit writes events down. For a store in memory it does nothing.
func (d *directory) Audit(events ...audit.Event) error {
	if d.DataDir == "" {
		return nil
	}
	l, err := audit.Open(d.DataDir)
	if err != nil {
		return err
	}
	return l.Append(events...)
}

// audited runs effect and writes it to the audit log. When the log cannot be written, effect
// does not run.
func (d *directory) audited(e audit.Event, effect func() error) error {
	if d.DataDir == "" {
		return effect()
	}
	l, err := audit.Open(d.DataDir)
	if err != nil {
		return err
	}
	return audited(l, e, effect)
}

func audited(l *audit.Log, e audit.Event, effect func() error) error {
	if err := l.Ready(); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	if err := l.Append(e); err != nil {
		return fmt.Errorf("%s of %s was done, but not written down: %w", e.Action, e.Target, err)
	}
	return nil
}

// openLogs prepares the logs that the host itself writes. No file is made before there is
// something to write.
func (d *directory) openLogs() error {
	if d.DataDir == "" {
		return nil
	}
	l, err := audit.Open(d.DataDir)
	if err != nil {
		return err
	}
	d.refusals, d.requests = audit.NewLimited(l), audit.OpenRequests(d.DataDir)
	return nil
}

func (d *directory) closeLogs() error {
	if d.requests == nil {
		return nil
	}
	return errors.Join(d.refusals.Close(), d.requests.Close())
}

// A requestLogger writes the requests of one run to the request log, and those that the policy
// refused to the audit log too.
type requestLogger struct {
	dir        *directory
	connection store.ConnectionID
	run        store.RunID // set before the run begins
}

// hop writes down one request, redirects apart.
func (t *requestLogger) hop(n network.Hop) {
	log := t.dir.Options.Log
	log.Info("network_request", "run", t.run, "connection", t.connection, "method", n.Method, "origin", n.Origin, "path", n.Path,
		"status", n.Status, "refused", n.Refused, "sent", n.Sent, "received", n.Received, "took", n.Took)
	if t.dir.requests == nil {
		return
	}
	err := t.dir.requests.Add(audit.Request{
		At: audit.Time{Time: n.Began}, Run: string(t.run), Connection: string(t.connection), Method: n.Method, Origin: n.Origin, Path: n.Path,
		Status: n.Status, Refused: n.Refused, Sent: n.Sent, Received: n.Received, Millis: n.Took.Milliseconds(), Family: n.Family,
	})
	if strings.HasSuffix(n.Refused, "_denied") {
		err = errors.Join(err, t.dir.refusals.Refused(string(t.connection), n.Refused, string(t.run)))
	}
	if err != nil {
		log.Error("request_not_logged", "run", t.run, "error", err)
	}
}

// A replayed session is the network binding of a run that is answered from a recording.
type replayed struct{ *network.Session }

// Takes implements binding.Binding: whatever handle is nobody else's.
func (replayed) Takes(call abi.Call, _ []byte) bool {
	switch call {
	case abi.CallNetworkRequest, abi.CallNetworkExchange, abi.CallRead, abi.CallClose:
		return true
	}
	return false
}

// Close implements binding.Binding.
func (s replayed) Close(context.Context) error { return s.Session.Close() }

var _ interface {
	binding.Binding
	binding.Sealer
	binding.Keeper
	binding.Requester
} = replayed{}

// An ownSession is the network binding of one run, with the tokens that the host obtains for it.
// Closing it flushes the request log.
type ownSession struct {
	replayed
	tokens   *tokens
	requests *audit.Requests
}

// Close implements binding.Binding.
func (s ownSession) Close(ctx context.Context) error {
	err := s.replayed.Close(ctx) // first what waits for a token
	s.tokens.Close()
	if s.requests != nil {
		err = errors.Join(err, s.requests.Flush())
	}
	return err
}

// by adds to an event who caused it: the principal of the context.
func by(ctx context.Context, e audit.Event) audit.Event {
	who := host.Who(ctx)
	e.Actor, e.RequestID, e.Address = who.ID, who.RequestID, who.Address
	return e
}
