package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const (
	// maxTips bounds a cursor. Tips that do not fit are walked again.
	maxTips = 5000
	// maxParents bounds one record.
	maxParents = 1000
)

// A commitCursor says that all that can be reached from Tips is collected, in
// one shape of the scope and the settings.
type commitCursor struct {
	Shape string   `json:"shape"`
	Tips  []string `json:"tips"`
}

// known returns the tips of the last run if they are good for this one.
func (c commitCursor) known(shape string) []plumbing.Hash {
	if c.Shape != shape {
		return nil
	}
	var tips []plumbing.Hash
	for _, t := range c.Tips {
		if h, ok := parseHash(t); ok {
			tips = append(tips, h)
		}
	}
	return tips
}

func newCommitCursor(shape string, tips map[plumbing.Hash]bool) commitCursor {
	sorted := make([]plumbing.Hash, 0, len(tips))
	for h := range tips {
		sorted = append(sorted, h)
	}
	slices.SortFunc(sorted, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	sorted = sorted[:min(len(sorted), maxTips)]
	c := commitCursor{Shape: shape, Tips: make([]string, len(sorted))}
	for i, h := range sorted {
		c.Tips[i] = h.String()
	}
	return c
}

// emitCommit emits one commit.
func (s *stream) emitCommit(c *object.Commit) error {
	when, key := timeText(c.Committer.When), c.Hash.String()
	if !s.Admits(key) || !s.AdmitsTime(when) {
		return nil
	}
	encoding := string(c.Encoding)
	person := func(v string) string { return cut(decoded(v, encoding), maxShort) }
	row := s.row()
	row.text("hash", key)
	row.texts("parents", hashTexts(c.ParentHashes))
	row.text("tree", c.TreeHash.String())
	row.text("author_name", person(c.Author.Name))
	row.text("author_email", person(c.Author.Email))
	row.textOrNull("authored_at", timeText(c.Author.When))
	row.text("committer_name", person(c.Committer.Name))
	row.text("committer_email", person(c.Committer.Email))
	row.textOrNull("committed_at", when)
	if s.Wants("subject") || s.Wants("body") {
		subject, body := splitMessage(decoded(c.Message, encoding))
		row.text("subject", cut(subject, maxText))
		row.text("body", cut(body, maxText))
	}
	return row.emit(key)
}

func hashTexts(list []plumbing.Hash) []string {
	texts := make([]string, min(len(list), maxParents))
	for i := range texts {
		texts[i] = list[i].String()
	}
	return texts
}

// splitMessage divides a message as git does: the subject is the first
// paragraph, on one line.
func splitMessage(message string) (subject, body string) {
	message = strings.TrimLeft(message, "\n")
	var b strings.Builder
	for message != "" {
		line, rest, _ := strings.Cut(message, "\n")
		message = rest
		line = strings.TrimRight(line, " \t\r")
		if line == "" {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String(), strings.Trim(message, "\n")
}
