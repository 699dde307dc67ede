package chromium

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	linesKept = 1000
	lineBytes = 1024
)

// said notes what a page's script wrote.
func (t *Tab) said(ev *runtime.EventConsoleAPICalled) {
	var parts []string
	for _, a := range ev.Args {
		parts = append(parts, objectText(a))
		if len(parts) == 20 {
			break
		}
	}
	t.line(string(ev.Type), strings.Join(parts, " "))
}

// threw notes an exception that nobody caught.
func (t *Tab) threw(ev *runtime.EventExceptionThrown) {
	text := ev.ExceptionDetails.Text
	if e := ev.ExceptionDetails.Exception; e != nil {
		text += " " + objectText(e)
	}
	t.line("error", text)
}

// noted notes what the browser has to say about the page.
func (t *Tab) noted(ev *log.EventEntryAdded) { t.line(string(ev.Entry.Level), ev.Entry.Text) }

func (t *Tab) line(level, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.console) >= linesKept {
		t.console = t.console[1:]
	}
	t.console = append(t.console, page.ConsoleLine{Level: level, Text: cutText(text, lineBytes), At: time.Now()})
}

// Console are the newest lines of the page's console, at most n.
func (t *Tab) Console(n int) []page.ConsoleLine {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = min(max(n, 0), len(t.console))
	return append([]page.ConsoleLine(nil), t.console[len(t.console)-n:]...)
}

// objectText is a value as a console shows it.
func objectText(o *runtime.RemoteObject) string {
	var s string
	switch {
	case len(o.Value) > 0 && json.Unmarshal(o.Value, &s) == nil:
		return s
	case len(o.Value) > 0:
		return cutText(string(o.Value), lineBytes)
	case o.UnserializableValue != "":
		return string(o.UnserializableValue)
	}
	return cutText(o.Description, lineBytes)
}
