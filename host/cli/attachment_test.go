package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
)

// TestAssistanceOnTerminal: an address and a code that the owner must open reach the
// terminal whole and without control characters; nothing else is repeated there.
func TestAssistanceOnTerminal(t *testing.T) {
	var out bytes.Buffer
	s := &scripted{next: terminal{screen: newScreen(&out)}}
	s.AssistanceOpened("run_1",
		run.LiveAssistance{ID: "a", Message: "nothing to open", Attachments: []abi.Attachment{{Kind: "file"}, {Kind: "url"}}})
	if out.Len() > 0 {
		t.Errorf("shown: %q", out.String())
	}
	const address = "https://login.example/device?user_code=WDJB-MJHT&x=483920"
	s.AssistanceOpened("run_1", run.LiveAssistance{ID: "b", Message: "Sign in\x1b[2J there", Attachments: []abi.Attachment{
		{Kind: "url", URL: address, Label: "device\x07page"}, {Kind: "qr", Payload: "otpauth://x?secret=\x1b]0;no\x07"},
	}})
	s.AssistanceOpened("run_1",
		run.LiveAssistance{ID: "c", Message: "Give it",
			Attachments: []abi.Attachment{{Kind: "file", Label: "Statement", Accept: ".csv"}}})
	s.AssistanceClosed("run_1", "b")
	got := out.String()
	for _, want := range []string{"Sign in", "Open (device", ": " + address + "\n", "Scan: otpauth://x?secret=", "█▀",
		"It is about a file (Statement): .csv\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\x07") {
		t.Errorf("control characters: %q", got)
	}
}

// TestDrawn: a code is as wide as high, has a quiet border, and a text too long for a
// terminal has none.
func TestDrawn(t *testing.T) {
	lines := qrLines("https://login.example/device")
	width := len([]rune(lines[0])) - 3
	if len(lines) != (width+1)/2 || strings.Trim(lines[0], " █") != "" {
		t.Errorf("%d lines of %d modules:\n%s", len(lines), width, strings.Join(lines, "\n"))
	}
	if qrLines(strings.Repeat("x", 601)) != nil {
		t.Error("a code for 601 bytes")
	}
}
