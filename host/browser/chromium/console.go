package chromium

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"

	"github.com/sluicehost/sluice/host/browser/page"
)

// console holds the newest lines of the page's console. The tab's mu guards it.
type console struct {
	tab   *Tab
	lines []page.ConsoleLine
}

const (
	linesKept = 1000
	lineBytes = 1024
)

// said records a call of the console by a script.
func (c *console) said(ev *runtime.EventConsoleAPICalled) {
	var parts []string
	for _, a := range ev.Args {
		parts = append(parts, objectText(a))
		if len(parts) == 20 {
			break
		}
	}
	c.line(string(ev.Type), strings.Join(parts, " "))
}

// threw records an uncaught exception.
func (c *console) threw(ev *runtime.EventExceptionThrown) {
	text := ev.ExceptionDetails.Text
	if e := ev.ExceptionDetails.Exception; e != nil {
		text += " " + objectText(e)
	}
	c.line("error", text)
}

// noted records a message of the browser about the page.
func (c *console) noted(ev *log.EventEntryAdded) { c.line(string(ev.Entry.Level), ev.Entry.Text) }

func (c *console) line(level, text string) {
	c.tab.mu.Lock()
	defer c.tab.mu.Unlock()
	if len(c.lines) >= linesKept {
		c.lines = c.lines[1:]
	}
	c.lines = append(c.lines, page.ConsoleLine{Level: level, Text: cutText(text, lineBytes), At: time.Now()})
}

// Console returns the newest lines of the page's console, at most n.
func (c *console) Console(n int) []page.ConsoleLine {
	c.tab.mu.Lock()
	defer c.tab.mu.Unlock()
	n = min(max(n, 0), len(c.lines))
	return append([]page.ConsoleLine(nil), c.lines[len(c.lines)-n:]...)
}

// objectText formats a value as a console does.
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
