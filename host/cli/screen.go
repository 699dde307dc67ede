package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/sluicehost/sluice/abi"
)

// A screen shows a run: as one block that is redrawn in place on a terminal, as plain
// lines elsewhere. Lines and questions stay above the block. It is safe for concurrent
// use.
type screen struct {
	out   io.Writer
	live  bool // a terminal that can be redrawn
	color bool
	width func() int

	mu           sync.Mutex // guards the terminal and what follows
	drawnLines   int        // lines of the block on the terminal
	questionOpen bool       // a question has the terminal
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, width: func() int { return 80 }}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return s
	}
	s.live = true
	s.color = os.Getenv("NO_COLOR") == ""
	s.width = func() int {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
		return 80
	}
	return s
}

// line prints a line that stays.
func (s *screen) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.out, text)
}

// draw replaces the block. It does nothing while a question has the terminal or when
// there is none.
func (s *screen) draw(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live || s.questionOpen {
		return
	}
	var b strings.Builder
	b.WriteString(s.eraser())
	width := s.width() - 1
	for _, l := range lines {
		b.WriteString(fit(l, width))
		b.WriteByte('\n')
	}
	s.drawnLines = len(lines)
	io.WriteString(s.out, b.String()) // nobody sees an error of the terminal
}

// hold takes the block away until release is called, for a question.
func (s *screen) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.questionOpen = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.questionOpen = false
	}
}

// clear takes the block away for good.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

// showStatus shows what on a terminal until done is called.
func (s *screen) showStatus(what string) (done func()) {
	s.draw([]string{what})
	return s.clear
}

func (s *screen) erase() {
	io.WriteString(s.out, s.eraser())
	s.drawnLines = 0
}

// eraser moves to the block's first line and clears from there on.
func (s *screen) eraser() string {
	if s.drawnLines == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", s.drawnLines)
}

// paint colours text, where colours are wanted.
func (s *screen) paint(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// The colours in use.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	dim    = "2"
)

// fit cuts a line without escape sequences to a number of columns, so that it
// never wraps: a wrapped block cannot be redrawn.
func fit(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return abi.Cut(line, max(0, columns-1)) + "…"
}
