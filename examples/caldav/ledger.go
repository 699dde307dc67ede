package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
)

// A key names a record: a digest of the path of its collection or object. Paths
// can be long, and the cursor holds the keys of all.
type key [10]byte

var keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (k key) String() string { return keyEncoding.EncodeToString(k[:]) }

func keyOf(path string) key {
	sum := sha256.Sum256([]byte(path))
	return key(sum[:len(key{})])
}

// A digest is the start of a SHA-256 of an ETag. The zero one equals none.
type digest [4]byte

func digestOf(text string) digest {
	sum := sha256.Sum256([]byte(text))
	return digest(sum[:len(digest{})])
}

// marks say which streams of a kind have a record of an object, a bit for each.
type marks byte

// An entry is what is known of an object.
type entry struct {
	version digest
	marks   marks
}

// A ledger is what is known of a collection: how far it was read, and what is in
// it. Where a server has no tokens, or forgets them, the entries are compared.
type ledger struct {
	Token string `json:"token,omitempty"` // sync token
	Tag   string `json:"tag,omitempty"`   // ctag, or a digest of the record of a collection
	Known string `json:"known,omitempty"` // base64 of entries of 15 bytes, sorted
	// Partial: there was no room for all entries.
	Partial bool `json:"partial,omitempty"`

	entries map[key]entry
}

// A cursor is what a stream leaves for the next run: ledgers by key of the
// collection.
type cursor struct {
	Shape   string             `json:"shape"` // of the scope
	Ledgers map[string]*ledger `json:"ledgers"`
}

const (
	entrySize = len(key{}) + len(digest{}) + 1
	maxCursor = 250_000 // the host takes 256 KiB
	maxToken  = 400
	maxTag    = 200
)

// unpack reads the entries. A ledger that cannot be read knows nothing.
func (l *ledger) unpack() {
	b, err := base64.StdEncoding.DecodeString(l.Known)
	if err != nil || len(b)%entrySize != 0 {
		*l, b = ledger{}, nil
	}
	l.entries = make(map[key]entry, len(b)/entrySize)
	for e := range slices.Chunk(b, entrySize) {
		l.entries[key(e)] = entry{digest(e[len(key{}):]), marks(e[entrySize-1])}
	}
}

// stale forgets how far the collection was read, and which versions; what is
// there stays known.
func (l *ledger) stale() {
	l.Token, l.Tag = "", ""
	for k, e := range l.entries {
		l.entries[k] = entry{marks: e.marks}
	}
}

// pack writes the entries, as many as there is room for.
func (l *ledger) pack(room int) {
	entries := make([][]byte, 0, len(l.entries))
	for k, e := range l.entries {
		entries = append(entries, append(append(slices.Clone(k[:]), e.version[:]...), byte(e.marks)))
	}
	slices.SortFunc(entries, bytes.Compare)
	if room = max(room, 0); len(entries) > room {
		entries, l.Partial = entries[:room], true
	}
	l.Known = base64.StdEncoding.EncodeToString(bytes.Join(entries, nil))
}

// pack makes the cursor fit, and reports whether there was room for all.
func (c *cursor) pack() (whole bool) {
	head := c.head()
	if head > maxCursor*4/5 { // tokens of odd characters
		for _, l := range c.Ledgers {
			l.Token, l.Tag = "", ""
		}
		head = c.head()
	}
	room := (maxCursor - head) / (entrySize * 4 / 3)
	whole = true
	for _, name := range slices.Sorted(maps.Keys(c.Ledgers)) {
		l := c.Ledgers[name]
		l.pack(room)
		room -= len(l.entries)
		whole = whole && !l.Partial
	}
	return whole
}

// head is the size of the cursor without entries.
func (c *cursor) head() int {
	bare := cursor{Shape: c.Shape, Ledgers: map[string]*ledger{}}
	for name, l := range c.Ledgers {
		bare.Ledgers[name] = &ledger{Token: l.Token, Tag: l.Tag, Partial: true}
	}
	b, err := json.Marshal(bare)
	if err != nil {
		return maxCursor
	}
	return len(b) + 16*len(c.Ledgers)
}

// bounded is "" for a token or tag that is too long to keep.
func bounded(s string, most int) string {
	if len(s) > most {
		return ""
	}
	return s
}
