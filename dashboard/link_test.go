package dashboard_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// TestLinks: http and https are offered by a click with the host shown, anything
// else is text; a code is drawn with its text.
func TestLinks(t *testing.T) {
	s := open(t)
	s.host.raw = &host.RawAssistance{Message: "m", Page: &host.OpenPage{Title: "Approve", URLHost: "bank.example"},
		Attachments: []abi.Attachment{
			{Kind: "url", URL: "https://bank.example:8443/ok?a=1"}, {Kind: "url", URL: "http://bank.example/plain"},
			{Kind: "url", URL: "javascript:alert(1)"}, {Kind: "url", URL: "https://user@bank.example/"},
			{Kind: "url", URL: "https://b\u0430nk.example/"}, {Kind: "url", URL: "//bank.example/"},
			{Kind: "url", URL: "ftp://bank.example/"}, {Kind: "qr", Payload: "https://bank.example/code"},
			{Kind: "qr", Payload: strings.Repeat("x", 5000)}, {Kind: "file", URL: "https://bank.example/file"},
		}}
	s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})},
		store.Event{Type: "run.assistance_requested",
			Data: data(map[string]any{"assistance_request_id": "q", "progress_posture": "running",
				"owner_action": "act_elsewhere", "response_obligation": "none", "message": "m"})})
	page := s.page("/ui/inbox")
	for _, want := range []string{`href="https://bank.example:8443/ok?a=1" target="_blank" rel="noopener noreferrer" hx-disable>Open bank.example:8443<`,
		`href="http://bank.example/plain" target="_blank"`, "not encrypted", `<path class="qr-ink" d="M`,
		"The browser is at <strong><bdi", "bank.example</bdi></strong> · ", "https://bank.example/code"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if n := strings.Count(page, `target="_blank"`); n != 2 {
		t.Errorf("%d links", n)
	}
	if n := strings.Count(page, "<path class=\"qr-ink\""); n != 1 {
		t.Errorf("%d codes", n)
	}
	if n := strings.Count(page, "not a plain web address"); n < 5 {
		t.Errorf("%d addresses are text", n)
	}
	if strings.Contains(page, "/file") {
		t.Error("a file is shown as a link")
	}
}

// A file or a fixture that assistance is about is named, also where there is nothing to
// open, and is no link.
func TestFilesAreNamed(t *testing.T) {
	s := open(t)
	s.host.raw = &host.RawAssistance{Message: "m",
		Attachments: []abi.Attachment{{Kind: "file", Label: "Statement", Accept: ".csv",
			URL: "https://bank.example/file"}, {Kind: "fixture", Ref: "mail-2"}, {Kind: "url", URL: "https://bank.example/ok"}}}
	s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})},
		store.Event{Type: "run.assistance_requested",
			Data: data(map[string]any{"assistance_request_id": "q", "progress_posture": "blocked",
				"owner_action": "operate_attachment", "response_obligation": "none", "message": "m"})})
	page := s.page("/ui/runs/run_1")
	for _, want := range []string{"Statement", "file .csv", "fixture mail-2"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, "bank.example") || strings.Contains(page, "not a plain web address") {
		t.Error("something is offered to be opened")
	}
}

// A question whose words another host has, which does not tell them, is shown as the timeline has it, with the reason.
func TestUntold(t *testing.T) {
	s := open(t)
	s.host.untold = host.Refuse("unavailable", "this host is not admitted")
	lease := s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})})
	s.commit(lease, question("q1", map[string]any{"code": map[string]any{"type": "string"}}, "code")[1:]...)
	for _, at := range []string{"/ui/inbox", "/ui/runs/run_1"} {
		if page := s.page(at); !strings.Contains(page, "Who are you?") || !strings.Contains(page, "this host is not admitted") {
			t.Errorf("%s says\n%s", at, page)
		}
	}
}
