package cli

import (
	"strings"

	"rsc.io/qr"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

var (
	_ run.LiveOwner = terminal{}
	_ run.LiveOwner = (*scripted)(nil)
)

// AssistanceOpened shows the addresses and codes that a connector wants its owner to
// open, which no event has. Without any it does nothing: the events show the message.
func (t terminal) AssistanceOpened(_ store.RunID, a run.LiveAssistance) {
	lines := attachmentLines(a.Attachments)
	if lines == nil {
		return
	}
	all := []string{"", "── the connector says:"}
	for _, line := range strings.Split(abi.CleanLines(a.Message), "\n") {
		all = append(all, "   │ "+line)
	}
	t.screen.line(strings.Join(append(all, lines...), "\n"))
}

// AssistanceClosed does nothing: printed lines stay.
func (terminal) AssistanceClosed(store.RunID, string) {}

// AssistanceOpened passes the request on to the next owner.
func (s *scripted) AssistanceOpened(id store.RunID, a run.LiveAssistance) {
	if d, ok := s.next.(run.LiveOwner); ok {
		d.AssistanceOpened(id, a)
	}
}

// AssistanceClosed passes the end of a request on to the next owner.
func (s *scripted) AssistanceClosed(id store.RunID, assistance string) {
	if d, ok := s.next.(run.LiveOwner); ok {
		d.AssistanceClosed(id, assistance)
	}
}

// maxTarget limits the bytes of a shown address or code.
const maxTarget = 2048

// attachmentLines returns the lines for the addresses and codes among attachments, or nil if there is none.
// The connector chose their text, which is cleaned.
func attachmentLines(attachments []abi.Attachment) (lines []string) {
	for _, a := range attachments {
		text, what := "", ""
		switch a.Kind {
		case "url":
			text, what = a.URL, "Open"
		case "qr":
			if text, what = a.Payload, "Scan"; text == "" {
				text = a.URL
			}
		case "file", "fixture":
			text, what = join(" ", a.Ref, a.Accept, a.Status), "It is about a "+a.Kind
			if text == "" && a.Label != "" {
				text = "see what it says"
			}
		}
		if text == "" {
			continue
		}
		if a.Label != "" {
			what += " (" + abi.Cut(abi.Clean(a.Label), 80) + ")"
		}
		if a.Kind == "qr" {
			lines = append(lines, qrLines(text)...)
		}
		lines = append(lines, "   "+what+": "+abi.Cut(abi.Clean(text), maxTarget))
	}
	return lines
}

// quietZone is the border that readers of codes need, in modules.
const quietZone = 2

// qrLines returns a QR code in half blocks, light on dark as terminals mostly are: two rows
// of modules in a line. nil for a text that is too long for one that a terminal shows.
func qrLines(text string) (lines []string) {
	if len(text) > 600 {
		return nil
	}
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil
	}
	light := func(x, y int) bool { return !code.Black(x, y) } // also outside the code
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		var line strings.Builder
		line.WriteString("   ")
		for x := -quietZone; x < code.Size+quietZone; x++ {
			switch upper, lower := light(x, y), y+1 < code.Size+quietZone && light(x, y+1); {
			case upper && lower:
				line.WriteString("█")
			case upper:
				line.WriteString("▀")
			case lower:
				line.WriteString("▄")
			default:
				line.WriteString(" ")
			}
		}
		lines = append(lines, line.String())
	}
	return lines
}
