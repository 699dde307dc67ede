package app

import (
	"context"
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// peers sends requests about a run to the host that performs it. Commands are documents in the store, each
// sealed to a key that belongs to one start of that host, removed before they are executed, and answered to a
// key of the sender. Documents that nobody takes expire.
type peers struct {
	*hosts
	key   hpke.PrivateKey
	verbs map[string]func(context.Context, json.RawMessage) (any, error)
	looks looks
}

// The HPKE suite of commands.
var (
	peerKEM  = hpke.DHKEM(ecdh.X25519())
	peerKDF  = hpke.HKDFSHA256()
	peerAEAD = hpke.ChaCha20Poly1305()
)

const (
	peerPurpose    = "sluice command of a host v1 "
	purposeCommand = "command of a host"
)

// Times and limits of commands.
const (
	commandLife = time.Minute            // until a command that nobody took or an answer that nobody read expires
	commandWait = 45 * time.Second       // for an answer
	commandLook = 500 * time.Millisecond // polling interval, in case a wake-up is missed
	commandsMax = 64                     // that are executed at once
)

// sent is a document: a sealed box, and a code that only hosts admitted to the vault can make.
type sent struct {
	Box  []byte `json:"box"`
	Code []byte `json:"code"`
}

// A command is the content of the box that asks a host to do something.
type command struct {
	Verb      string          `json:"verb"`
	Principal host.Principal  `json:"principal"`
	Body      json.RawMessage `json:"body"`
	AnswerTo  []byte          `json:"answer_to"` // public key of the sender
}

// An outcome is the content of the box that answers a command.
type outcome struct {
	Body    json.RawMessage `json:"body,omitempty"`
	Refusal *host.Refusal   `json:"refusal,omitempty"`
	Absent  bool            `json:"absent,omitempty"` // stands for store.ErrNotFound
	Failed  bool            `json:"failed,omitempty"` // the log of the answering host has the error
}

func newPeers(hs *hosts) (*peers, error) {
	key, err := peerKEM.GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("make key of this start: %w", err)
	}
	return &peers{hosts: hs, key: key, verbs: map[string]func(context.Context, json.RawMessage) (any, error){}}, nil
}

// serve registers what this host does when another host sends the verb.
func serve[Q, A any](p *peers, verb string, do func(context.Context, Q) (A, error)) {
	p.verbs[verb] = func(ctx context.Context, body json.RawMessage) (any, error) {
		var q Q
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, fmt.Errorf("read command %s: %w", verb, err)
		}
		return do(ctx, q)
	}
}

// errOrphan is returned when the host that performs an active run is gone. Another host is about to take the run
// over or to end it.
var errOrphan = host.Refuse("unavailable",
	"the host that had the run is gone, and no other one has taken it yet; ask again in a moment")

// holder returns the other host that performs an active run, nil if none does. The error is errOrphan if that
// host is gone.
func (hs *hosts) holder(ctx context.Context, id store.RunID) (*store.Member, error) {
	if hs.members == nil {
		return nil, nil
	}
	if _, here := hs.runs.controller.Live(id); here || hs.runs.suspended.has(id) {
		return nil, nil
	}
	leases, err := hs.Store.Leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("list active runs: %w", err)
	}
	at := ""
	for _, l := range leases {
		if l.RunID == id && l.BootEpoch != hs.Epoch {
			at = l.BootEpoch
		}
	}
	if at == "" {
		return nil, nil
	}
	all, err := hs.members.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	for _, m := range all {
		if m.Epoch == at {
			return &m, nil
		}
	}
	return nil, errOrphan
}

// atHolder performs a request at the host that performs a run: through a command at another host, or with here
// at this one.
func atHolder[Q, A any](ctx context.Context, p *peers, id store.RunID, verb string, q Q,
	here func(context.Context, Q) (A, error)) (a A, err error) {
	if p == nil {
		return here(ctx, q)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	defer clear(body)
	var out outcome
	waiting, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	for {
		m, err := p.holder(waiting, id)
		if m == nil && err == nil {
			var own Q // a copy, since here may erase it
			if err := json.Unmarshal(body, &own); err != nil {
				return a, err
			}
			if a, err = here(ctx, own); !p.moved(waiting, id, nil, err) {
				return a, err
			}
			continue
		}
		if err == nil {
			out, err = p.ask(waiting, m, command{Verb: verb, Principal: host.Who(ctx), Body: body})
		}
		switch {
		case errors.Is(err, errOrphan): // the host that takes the run over is asked next
			if !rest(waiting, commandLook) {
				return a, errOrphan
			}
			continue
		case err != nil:
			return a, err
		case out.Refusal != nil && p.moved(waiting, id, m, out.Refusal):
			continue
		}
		return a, out.read(m, verb, &a)
	}
}

// atMember performs a request at another host through a command.
func atMember[Q, A any](ctx context.Context, p *peers, m *store.Member, verb string, q Q) (a A, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	defer clear(body)
	out, err := p.ask(ctx, m, command{Verb: verb, Principal: host.Who(ctx), Body: body})
	if err == nil {
		err = out.read(m, verb, &a)
	}
	return a, err
}

// read decodes the outcome of a command into into, or returns its error.
func (out *outcome) read(m *store.Member, verb string, into any) error {
	switch {
	case out.Refusal != nil:
		return out.Refusal
	case out.Absent:
		return store.ErrNotFound
	case out.Failed:
		return fmt.Errorf("%s at host %s failed; its log says how", verb, m.ID)
	}
	return json.Unmarshal(out.Body, into)
}

// moved reports whether a host, nil for this one, refused a request because another host took the run over
// meanwhile.
func (p *peers) moved(ctx context.Context, id store.RunID, from *store.Member, err error) bool {
	var r *host.Refusal
	if !errors.As(asRefusal(err), &r) || r.Code != "no_pending_interaction" && r.Code != "unavailable" ||
		!rest(ctx, commandLook) {
		return false
	}
	to, err := p.holder(ctx, id)
	switch {
	case err != nil || to == nil && from == nil:
		return errors.Is(err, errOrphan)
	case to == nil:
		return p.runs.suspended.has(id)
	}
	return from == nil || to.Epoch != from.Epoch
}

// ask sends a command and waits for its outcome.
func (p *peers) ask(ctx context.Context, m *store.Member, c command) (out outcome, err error) {
	own, err := peerKEM.GenerateKey()
	if err != nil {
		return out, err
	}
	c.AnswerTo = own.PublicKey().Bytes()
	id := m.Epoch + "/" + randomID("")
	key, err := p.keyOf(ctx, m)
	if err == nil {
		err = p.send(ctx, id, key, c)
	}
	if err != nil {
		return out, err
	}
	wake, stop := p.members.Changed(store.Commands)
	defer stop()
	look := time.NewTicker(commandLook)
	defer look.Stop()
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	for {
		d, err := p.Store.Document(ctx, store.Commands, answerID(id))
		switch {
		case err == nil:
			_ = p.Store.Write(ctx, store.Write{Kind: store.Commands, ID: d.ID}) // otherwise it expires
			err = p.open(ctx, own, d, &out)
			return out, err
		case ctx.Err() != nil:
			return out, host.Refuse("unavailable",
				"host %s did not answer in time; look whether it did what was asked before you ask again", m.ID)
		case !errors.Is(err, store.ErrNotFound):
			return out, err
		}
		select {
		case <-wake:
		case <-look.C:
			if alive, err := p.alive(ctx, m.Epoch); err == nil && !alive {
				return out, errOrphan
			}
		case <-ctx.Done():
		}
	}
}

func answerID(id string) string { return "answer/" + id }

// send seals a value to a public key and writes it as a command document.
func (p *peers) send(ctx context.Context, id string, public []byte, v any) error {
	key, err := peerKEM.NewPublicKey(public)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	defer clear(plain)
	box, err := hpke.Seal(key, peerKDF, peerAEAD, []byte(peerPurpose+id), plain)
	if err != nil {
		return err
	}
	code, err := p.shared.Sign(ctx, purposeCommand, append([]byte(id+"\x00"), box...))
	if err != nil {
		return err
	}
	data, err := json.Marshal(sent{box, code})
	if err != nil {
		return err
	}
	return p.Store.Write(ctx,
		store.Write{Kind: store.Commands, ID: id, Data: data, If: store.Absent(),
			ExpiresAt: p.members.Now().Add(commandLife)})
}

// open decodes a document after verifying that a host admitted to the vault sent it.
func (p *peers) open(ctx context.Context, key hpke.PrivateKey, d store.Document, into any) error {
	var s sent
	if err := json.Unmarshal(d.Data, &s); err != nil {
		return err
	}
	genuine, err := p.shared.Signed(ctx, purposeCommand, append([]byte(d.ID+"\x00"), s.Box...), s.Code)
	if err == nil && !genuine {
		err = errors.New("none of the hosts that are admitted to the vault sent it")
	}
	if err != nil {
		return err
	}
	plain, err := hpke.Open(key, peerKDF, peerAEAD, []byte(peerPurpose+d.ID), s.Box)
	if err != nil {
		return err
	}
	defer clear(plain)
	return json.Unmarshal(plain, into)
}

// listen executes the commands of other hosts until ctx ends.
func (p *peers) listen(ctx context.Context) {
	wake, stop := p.members.Changed(store.Commands)
	defer stop()
	look := time.NewTicker(commandLook)
	defer look.Stop()
	var work sync.WaitGroup
	defer work.Wait()
	room := make(chan struct{}, commandsMax)
	for {
		docs, err := p.Store.Documents(ctx,
			store.DocumentQuery{Kind: store.Commands, Prefix: p.Epoch + "/", Limit: commandsMax})
		if err != nil && ctx.Err() == nil {
			p.Options.Log.Error("commands_not_read", "error", err)
		}
		for _, d := range docs {
			err := p.Store.Write(ctx, store.Write{Kind: store.Commands, ID: d.ID, If: &d.Revision}) // its remover executes it
			if err != nil {
				continue
			}
			room <- struct{}{}
			work.Go(func() {
				p.perform(ctx, d)
				<-room
			})
		}
		select {
		case <-wake:
		case <-look.C:
		case <-p.members.Removed():
			return
		case <-ctx.Done():
			return
		}
	}
}

// perform executes one command and answers it.
func (p *peers) perform(ctx context.Context, d store.Document) {
	var c command
	if err := p.open(ctx, p.key, d, &c); err != nil {
		p.Options.Log.Error("command_not_read", "error", err) // the sender is unknown
		return
	}
	out := p.outcome(ctx, c)
	clear(c.Body)
	if err := p.send(ctx, answerID(d.ID), c.AnswerTo, out); err != nil && ctx.Err() == nil {
		p.Options.Log.Error("command_not_answered", "verb", strings.Clone(c.Verb), "error", err)
	}
}

// unable returns the refusal of a command that only a newer version knows.
func (p *peers) unable() *host.Refusal {
	return host.Refuse("unavailable", "host %s is of a version that cannot do this for another host; ask it there", p.ID)
}

func (p *peers) outcome(ctx context.Context, c command) (out outcome) {
	do := p.verbs[c.Verb]
	if do == nil {
		return outcome{Refusal: p.unable()}
	}
	a, err := do(host.As(ctx, c.Principal), c.Body)
	if err == nil {
		out.Body, err = json.Marshal(a)
	}
	err = asRefusal(err)
	switch {
	case err == nil:
	case errors.As(err, &out.Refusal):
	case errors.Is(err, store.ErrNotFound):
		out.Absent = true
	default:
		p.Options.Log.Error("command_failed", "verb", c.Verb, "error", err)
		out.Failed = true
	}
	return out
}
