package assistant

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A published ask is a document of kind store.AssistantAsks, by which other hosts list a call that waits at this one
// and know whom to bring its answer. The call itself waits in memory, and its host alone decides it.
type published struct {
	Epoch string             `json:"epoch"`
	Call  host.AssistantCall `json:"call"`
}

// publishWithin bounds a write of a published ask.
const publishWithin = 5 * time.Second

func askKey(id, call string) string { return id + "/" + call }

// ask waits until the owner decides a call, at any host, or the time is up. It returns whether the call is approved
// and, if not, a code for the reason.
func (d *Gateway) ask(ctx context.Context, id string, call host.AssistantCall) (yes bool, code string) {
	if d.o.Hosts != nil {
		defer d.publish(ctx, id, call)()
	}
	return d.asks.wait(ctx, id, call, d.o.AskFor)
}

// publish shows other hosts a call that is about to wait here, until withdraw is called. If it fails, the call can
// be decided at this host only.
func (d *Gateway) publish(ctx context.Context, id string, call host.AssistantCall) (withdraw func()) {
	write := func(ctx context.Context, w store.Write) {
		ctx, cancel := context.WithTimeout(ctx, publishWithin)
		defer cancel()
		if err := d.o.Store.Write(ctx, w); err != nil {
			d.o.Log.Warn("waiting_call_not_shown_at_other_hosts", "call", call.CallID, "error", err)
		}
	}
	call.Outcome = "waiting"
	data, err := json.Marshal(published{d.o.Hosts.Self(), call})
	if err != nil {
		d.o.Log.Warn("waiting_call_not_shown_at_other_hosts", "call", call.CallID, "error", err)
		return func() {}
	}
	w := store.Write{Kind: store.AssistantAsks, ID: askKey(id, call.CallID), Data: data,
		ExpiresAt: store.Now(d.o.Store).Add(d.o.AskFor + publishWithin)}
	write(ctx, w)
	return func() { write(context.WithoutCancel(ctx), store.Write{Kind: w.Kind, ID: w.ID}) }
}

// elsewhere returns the calls that wait at other hosts, by the id of their assistant; those of one assistant, or of
// all for "".
func (d *Gateway) elsewhere(ctx context.Context, id string) (map[string][]host.AssistantCall, error) {
	if d.o.Hosts == nil {
		return nil, nil
	}
	q := store.DocumentQuery{Kind: store.AssistantAsks, Limit: 1000}
	if id != "" {
		q.Prefix = id + "/"
	}
	docs, err := d.o.Store.Documents(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list waiting calls: %w", err)
	}
	out := map[string][]host.AssistantCall{}
	for _, doc := range docs {
		p, err := readPublished(doc)
		if err != nil {
			return nil, err
		}
		if p.Epoch == d.o.Hosts.Self() {
			continue
		}
		alive, err := d.o.Hosts.Alive(ctx, p.Epoch)
		if err != nil {
			return nil, err
		}
		if of, _, ok := strings.Cut(doc.ID, "/"); ok && alive {
			out[of] = append(out[of], p.Call)
		}
	}
	return out, nil
}

func readPublished(doc store.Document) (p published, err error) {
	if err := json.Unmarshal(doc.Data, &p); err != nil {
		return p, fmt.Errorf("read waiting call %s: %w", doc.ID, err)
	}
	return p, nil
}

// waitingCalls returns the waiting calls of an assistant at all hosts, newest first.
func (d *Gateway) waitingCalls(ctx context.Context, id string) ([]host.AssistantCall, error) {
	there, err := d.elsewhere(ctx, id)
	out := append(d.asks.of(id), there[id]...)
	slices.SortStableFunc(out, func(a, b host.AssistantCall) int { return b.At.Compare(a.At) })
	return out, err
}

// decideElsewhere brings a decision to the host at which the call waits, store.ErrNotFound if none does.
func (d *Gateway) decideElsewhere(ctx context.Context, id string, q Decision) error {
	none := fmt.Errorf("call: %w", store.ErrNotFound)
	if d.o.Hosts == nil {
		return none
	}
	doc, err := d.o.Store.Document(ctx, store.AssistantAsks, askKey(id, q.Call))
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	p, err := readPublished(doc)
	if err != nil || p.Epoch == d.o.Hosts.Self() {
		return cmp.Or(err, none)
	}
	if alive, err := d.o.Hosts.Alive(ctx, p.Epoch); err != nil || !alive {
		return cmp.Or(err, none)
	}
	return d.o.Hosts.Decide(ctx, p.Epoch, q)
}
