package main

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
	"strings"
)

const (
	// maxPacked keeps a cursor well below the host's 256 KiB.
	maxPacked = 180 << 10
	// maxNames bounds what a cursor unpacks to.
	maxNames = 16 << 20
)

// A nameCursor remembers a list of names, so that the next run sees which are
// gone. Names repeat each other a lot, so they are kept compressed.
type nameCursor struct {
	Count  int    `json:"count"`
	Packed string `json:"names,omitempty"` // base64 of deflate of lines
}

// newNameCursor packs names, and reports whether all of them fit.
func newNameCursor(names []string) (c nameCursor, whole bool) {
	for n := len(names); ; n = n * 3 / 4 {
		packed := packLines(names[:n])
		if len(packed) <= maxPacked {
			return nameCursor{Count: n, Packed: packed}, n == len(names)
		}
	}
}

func packLines(lines []string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return ""
	}
	// Writes to a bytes.Buffer do not fail.
	_, _ = io.WriteString(w, strings.Join(lines, "\n"))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// names unpacks the list. A cursor that cannot be read knows none.
func (c nameCursor) names() []string {
	if c.Count == 0 {
		return nil
	}
	packed, err := base64.StdEncoding.DecodeString(c.Packed)
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxNames))
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}
