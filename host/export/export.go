// Package export writes records the way people and programs take them away: as
// lines of JSON, one a record, and as CSV. The command line and the API share it,
// so that both write the same bytes.
//
// Data, keys and names of members are a connector's: hostile. What it writes is
// for files and downloads; CSV is made harmless to spreadsheets, JSON is not
// escaped for HTML.
package export

import (
	"bytes"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// MaxFind bounds the text that records are searched for, in bytes.
const MaxFind = 256

// Find matches records whose key or data, as stored, contains text, whatever its
// case; nil for an empty text, which matches all.
func Find(text string) func(store.Record) bool {
	if text == "" {
		return nil
	}
	text = strings.ToLower(text)
	return func(r store.Record) bool {
		return bytes.Contains(bytes.ToLower(r.Data), []byte(text)) || strings.Contains(strings.ToLower(r.Key), text)
	}
}

// Both matches what x and y match; nil matches all.
func Both(x, y func(store.Record) bool) func(store.Record) bool {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return func(r store.Record) bool { return x(r) && y(r) }
}

// Orders are the orders of records by their names, each with a reverse that
// begins with -: time is emittedAt.
var Orders = []string{"version", "-version", "key", "-key", "time", "-time"}

// OrderOf is an order by its name; unknown ones are by version.
func OrderOf(name string) (o store.Order, descending bool) {
	name, descending = strings.CutPrefix(name, "-")
	switch name {
	case "key":
		return store.ByKey, descending
	case "time":
		return store.ByEmitted, descending
	}
	return store.ByVersion, descending
}

// FileName is a name without what file systems and headers make something of.
func FileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
			return r
		}
		return '_'
	}, name)
}
