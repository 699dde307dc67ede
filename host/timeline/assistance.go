package timeline

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// The statuses of an item.
const (
	ItemOpen      = "open"
	ItemResolved  = "resolved"
	ItemCancelled = "cancelled"
	ItemTimedOut  = "timed_out"
	ItemEscalated = "escalated"
	ItemAbandoned = "abandoned" // the run ended before
)

// An Item is a request for assistance. Its three axes are independent; no attachment has a URL or a
// payload.
type Item struct {
	AssistanceID  string             `json:"assistanceId"`
	InteractionID string             `json:"interactionId,omitempty"`
	InterruptID   string             `json:"interruptId,omitempty"`
	RunID         store.RunID        `json:"runId"`
	NodeID        string             `json:"nodeId"`
	ConnectionID  store.ConnectionID `json:"connectionId,omitempty"`
	// Kind is the kind of the interaction, or assistance for a request that does not block.
	Kind               string           `json:"kind"`
	ProgressPosture    string           `json:"progressPosture"`
	OwnerAction        string           `json:"ownerAction"`
	ResponseObligation string           `json:"responseObligation"`
	Sensitivity        string           `json:"sensitivity"`
	Message            string           `json:"message"`
	Stream             string           `json:"stream,omitempty"`
	InputSchema        json.RawMessage  `json:"inputSchema,omitempty"` // reduced
	Attachments        []abi.Attachment `json:"attachments"`
	Status             string           `json:"status"`
	CreatedAt          string           `json:"createdAt"`
	ExpiresAt          *time.Time       `json:"-"`
	Expires            string           `json:"expiresAt,omitempty"`
	// OutlivesHost says whether a question stays open when the host stops; HostBound says why it
	// does not.
	OutlivesHost bool   `json:"outlivesHost,omitempty"`
	HostBound    string `json:"hostBound,omitempty"`
	// RequestID is the assistance_request_id, by which the broker identifies it.
	RequestID string `json:"-"`
}

// crockford is Crockford's base 32, the alphabet of ULIDs.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// AssistanceID returns the id of a run's request in the API. It is derived from both ids.
func AssistanceID(run store.RunID, requestID string) string {
	h := sha256.New()
	h.Write([]byte("sluice assistance\x00" + string(run) + "\x00" + requestID))
	return "ast_" + crockford.EncodeToString(h.Sum(nil))[:26]
}

// Assistance returns the requests of the run, oldest first, or only the open ones.
func (f *Fold) Assistance(openOnly bool) []Item {
	out := []Item{}
	for _, i := range f.items {
		if !openOnly || i.Status == ItemOpen {
			out = append(out, i.shown())
		}
	}
	return out
}

// AssistanceByID returns an item, open or closed. If a connector used a request id twice, it is the
// newer one.
func (f *Fold) AssistanceByID(id string) (Item, bool) {
	for _, i := range slices.Backward(f.items) {
		if i.AssistanceID == id {
			return i.shown(), true
		}
	}
	return Item{}, false
}

// shown returns a copy with its times as text.
func (i *Item) shown() Item {
	s := *i
	s.Attachments = slices.Clone(i.Attachments)
	if i.ExpiresAt != nil {
		s.Expires = store.Time(*i.ExpiresAt)
	}
	return s
}

func (f *Fold) assistanceEvent(t Type, e store.Event, m members) {
	id := m.text("assistance_request_id")
	if t == RunAssistanceRequested {
		f.ask(id, e, m)
		return
	}
	for _, i := range slices.Backward(f.items) {
		if i.RequestID != id || i.Status != ItemOpen {
			continue
		}
		switch t {
		case RunAssistanceUpdated:
			i.Attachments = attachmentsOf(m)
		case RunAssistanceResolved:
			i.Status = ItemResolved
		case RunAssistanceCancelled:
			i.Status = ItemCancelled
		case RunAssistanceTimedOut:
			i.Status = ItemTimedOut
		case RunAssistanceEscalated:
			i.Status = ItemEscalated
		}
		return
	}
}

func (f *Fold) ask(id string, e store.Event, m members) {
	i := &Item{
		AssistanceID: AssistanceID(e.RunID, id), RequestID: id, RunID: e.RunID, NodeID: f.node, ConnectionID: e.ConnectionID,
		InteractionID: e.InteractionID, Kind: m.text("kind"),
		ProgressPosture: m.text("progress_posture"), OwnerAction: m.text("owner_action"),
		ResponseObligation: m.text("response_obligation"), Sensitivity: m.text("sensitivity"),
		Message: m.text("message"), Stream: string(e.Stream), Attachments: attachmentsOf(m),
		Status: ItemOpen, CreatedAt: store.Time(e.OccurredAt),
		OutlivesHost: m.yes("outlives_host"), HostBound: m.text("host_bound"),
	}
	i.Kind = cmp.Or(i.Kind, "assistance")
	if m.object("input_schema") != nil {
		i.InputSchema = m.raw("input_schema")
	}
	var seconds float64
	if json.Unmarshal(m["timeout_seconds"], &seconds) == nil && m.raw("timeout_seconds") != nil && seconds >= 0 &&
		seconds < maxTimeout.Seconds() {
		i.ExpiresAt = new(e.OccurredAt.Add(time.Duration(seconds * float64(time.Second))))
	}
	if len(f.items) == maxItems {
		f.items = slices.Delete(f.items, 0, 1)
	}
	f.items = append(f.items, i)
}

// maxAttachments is more than a request may have.
const maxAttachments = 16

// attachmentsOf returns the attachments without live details, which are dropped even if a log
// contains them.
func attachmentsOf(m members) []abi.Attachment {
	var raw []json.RawMessage
	if json.Unmarshal(m["attachments"], &raw) != nil {
		return []abi.Attachment{}
	}
	out := []abi.Attachment{}
	for _, r := range raw[:min(len(raw), maxAttachments)] {
		a := membersOf(r)
		out = append(out, abi.Attachment{
			Kind: a.text("kind"), Role: a.text("role"), Label: a.text("label"), Ref: a.text("ref"),
			Status: a.text("status"), Reason: a.text("reason"),
		})
	}
	return out
}
