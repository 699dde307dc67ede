package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds of what is kept of what was typed.
const (
	maxHistory     = 1000     // lines
	maxHistoryLine = 10_000   // bytes; longer ones are not kept
	maxHistoryFile = 10 << 20 // bytes that are read of the file
)

// history is what was typed at the prompt, in a file that only its user reads. It is a
// term.History. What cannot be written is forgotten with the process.
type history struct {
	path  string // "" keeps nothing
	lines []string
}

// historyFile returns where statements are kept: in the user's directory for state, and outside
// of the data directory, which may be another host's.
func historyFile() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "sluice", "query_history")
}

// openHistory reads the typed lines of earlier sessions. It shortens a long file.
func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	f, err := os.Open(path)
	if err != nil {
		return h
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		h.path = "" // do not write to it
		return h
	}
	text, err := io.ReadAll(io.LimitReader(f, maxHistoryFile))
	if err != nil {
		return h
	}
	for line := range bytes.Lines(text) {
		if line := strings.TrimRight(string(line), "\r\n"); isKept(line) {
			h.lines = append(h.lines, line)
		}
	}
	if len(h.lines) > maxHistory {
		h.lines = slices.Clone(h.lines[len(h.lines)-maxHistory:])
		h.rewrite()
	}
	return h
}

func isKept(line string) bool {
	return strings.TrimSpace(line) != "" && len(line) <= maxHistoryLine && !strings.ContainsAny(line, "\r\n\x00")
}

// rewrite replaces the file by one with the kept lines.
func (h *history) rewrite() {
	f, err := os.CreateTemp(filepath.Dir(h.path), "query_history-*") // mode 0600
	if err != nil {
		return
	}
	_, err = f.WriteString(strings.Join(h.lines, "\n") + "\n")
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), h.path) != nil {
		_ = os.Remove(f.Name()) // the old file stays
	}
}

// Add implements term.History. A line that repeats the one before is not kept.
func (h *history) Add(line string) {
	if !isKept(line) || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	if h.lines = append(h.lines, line); len(h.lines) > maxHistory {
		h.lines = h.lines[1:]
	}
	if h.path == "" || os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_ = f.Chmod(0o600)                // in case it was made readable to others
	_, _ = f.WriteString(line + "\n") // see history
}

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History: 0 is the newest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
