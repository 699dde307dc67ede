// Package export writes records as JSON, one per line, and as CSV. The command line and the API share it, so that both
// write the same bytes.
//
// Data, keys and names of members come from a connector and are untrusted. The output is for files and downloads: CSV
// is safe for spreadsheets, JSON is not escaped for HTML.
package export

import (
	"bytes"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// MaxFind bounds the text for Find, in bytes.
const MaxFind = 256

// Find returns a function that matches records whose key or data, as stored, contains text regardless of case, or nil
// for an empty text, which matches all.
func Find(text string) func(store.Record) bool {
	if text == "" {
		return nil
	}
	text = strings.ToLower(text)
	return func(r store.Record) bool {
		return bytes.Contains(bytes.ToLower(r.Data), []byte(text)) || strings.Contains(strings.ToLower(r.Key), text)
	}
}

// Both returns a function that matches what x and y match. nil matches all.
func Both(x, y func(store.Record) bool) func(store.Record) bool {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return func(r store.Record) bool { return x(r) && y(r) }
}

// Orders lists the names of the orders of records, each with its reverse, which begins with -. The order time is by
// emittedAt.
var Orders = []string{"version", "-version", "key", "-key", "time", "-time"}

// OrderOf returns an order by its name. Unknown names mean by version.
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

// FileName replaces characters that are special in file systems or headers.
func FileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
			return r
		}
		return '_'
	}, name)
}
