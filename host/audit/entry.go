package audit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// An Entry is one line of the log. Hash is SHA-256 over the 32 bytes of PrevHash and the line
// without its hash; the first entry's PrevHash is zero.
type Entry struct {
	Sequence  uint64            `json:"sequence"` // from 1
	ID        string            `json:"auditId"`
	At        Time              `json:"at"`
	Actor     string            `json:"actor"`
	Action    Action            `json:"action"`
	Target    string            `json:"target"`
	Outcome   Outcome           `json:"outcome"`
	RequestID string            `json:"requestId,omitempty"`
	Address   string            `json:"address,omitempty"`
	Details   map[string]string `json:"details,omitempty"`
	PrevHash  Hash              `json:"prevHash"`
	Hash      Hash              `json:"hash,omitzero"`
}

// maxLine bounds a line with its line end. Entries within the bounds of their texts are shorter.
const maxLine = 16 << 10

// A Hash is a SHA-256, encoded in JSON as hexadecimal.
type Hash [sha256.Size]byte

// String returns the hash as hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return errors.New("a hash has 64 hexadecimal digits")
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// A Time is a time in UTC with millisecond precision.
type Time struct{ time.Time }

const timeFormat = "2006-01-02T15:04:05.000Z"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(timeFormat) + `"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(b []byte) (err error) {
	t.Time, err = time.Parse(`"`+timeFormat+`"`, string(b))
	return err
}

var ids = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID returns an id that sorts by time.
func newID(at time.Time) string {
	b := make([]byte, 16)
	binary.BigEndian.PutUint64(b, uint64(at.UnixMilli())<<16)
	rand.Read(b[6:])
	return "aud_" + ids.EncodeToString(b)
}

// entryOf returns the entry for an event, given its predecessor's hash.
func entryOf(e Event, at time.Time, sequence uint64, prev Hash) (Entry, error) {
	if !slices.Contains(Actions, e.Action) || e.Outcome != Done && e.Outcome != Refused && e.Outcome != Failed {
		return Entry{}, fmt.Errorf("audit: %q, %q is no action and outcome of the log", e.Action, e.Outcome)
	}
	out := Entry{
		Sequence: sequence, ID: newID(at), At: Time{at.UTC().Truncate(time.Millisecond)}, Actor: e.Actor,
		Action: e.Action, Target: e.Target, Outcome: e.Outcome, RequestID: e.RequestID, Address: e.Address, PrevHash: prev,
	}
	if out.Actor == "" {
		out.Actor = owner()
	}
	for _, d := range e.Details[:min(len(e.Details), maxDetails)] {
		if out.Details == nil {
			out.Details = map[string]string{}
		}
		out.Details[d.key] = d.value
	}
	out = out.cleaned()
	return out, out.seal()
}

// cleaned returns the entry with its texts bounded and safe to display.
func (e Entry) cleaned() Entry {
	e.ID, e.RequestID, e.Address = short(e.ID, maxShort), short(e.RequestID, maxShort), short(e.Address, maxShort)
	e.Actor, e.Target = short(e.Actor, maxActor), short(e.Target, maxTarget)
	details := e.Details
	e.Details = nil
	for k, v := range details {
		if e.Details == nil {
			e.Details = map[string]string{}
		}
		e.Details[short(k, maxShort)] = short(v, maxValue)
	}
	return e
}

// seal computes the hash.
func (e *Entry) seal() error {
	e.Hash = Hash{}
	text, err := e.text()
	if err != nil {
		return err
	}
	e.Hash = sha256.Sum256(append(e.PrevHash[:], text...))
	return nil
}

// text returns the only encoding of an entry, with its line end.
func (e *Entry) text() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

var dotted = lazily(`^[a-z_]{1,40}\.[a-z_]{1,40}$`)

// errNotWritten means that a line was not written by this package.
var errNotWritten = errors.New("it is not as it was written")

// parseEntry parses a line with its line end. The entry encodes to exactly the same bytes, hash
// included. Its action may be unknown, from a later version.
func parseEntry(line []byte) (Entry, error) {
	var e Entry
	if len(line) > maxLine || json.Unmarshal(line, &e) != nil || len(e.Details) > maxDetails ||
		!dotted().MatchString(string(e.Action)) || !dotted().MatchString("outcome."+string(e.Outcome)) {
		return Entry{}, errNotWritten
	}
	hash := e.Hash
	e = e.cleaned()
	if err := e.seal(); err != nil || e.Hash != hash {
		return Entry{}, errNotWritten
	}
	if text, err := e.text(); err != nil || !bytes.Equal(text, line) {
		return Entry{}, errNotWritten
	}
	return e, nil
}
