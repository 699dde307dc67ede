package run

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sluicehost/sluice/store"
)

// NewRunID returns a new id. Ids sort by time.
func NewRunID(now time.Time) store.RunID {
	return store.RunID(newULID("run_", now))
}

// NewTraceID returns a new id of a trace.
func NewTraceID() store.TraceID { return store.TraceID(hexID("trc_", 8)) }

func newULID(prefix string, now time.Time) string {
	return prefix + ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}

func hexID(prefix string, bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return prefix + hex.EncodeToString(b)
}

// randomOf reads n bytes from a source that must not fail.
func randomOf(source io.Reader, n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(source, b); err != nil {
		panic("no random bytes: " + err.Error())
	}
	return b
}

func sortedKeys[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }

func itoa(n int) string { return strconv.Itoa(n) }

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
