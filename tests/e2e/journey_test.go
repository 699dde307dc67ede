package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// runOf returns the run that a tab shows.
func (b *tab) runOf() store.RunID {
	b.t.Helper()
	b.until(`location.pathname.startsWith("/ui/runs/")`)
	return store.RunID(strings.TrimPrefix(eval[string](b, `location.pathname`), "/ui/runs/"))
}

// TestJourney is an owner's first day: from the login link to records, by the
// pages alone.
func TestJourney(t *testing.T) {
	h, _ := open(t, tempDir(t))
	wasm, err := build.Connector("examples/ask")
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(tempDir(t), "ask.wasm")
	if err := os.WriteFile(module, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	b := signIn(t, h, false)
	b.sees("Welcome to Sluice")
	b.shot("welcome")

	b.open("/ui/connectors")
	b.do(chromedp.SetUploadFiles(chromedp.CSS(`input[name=module]`), []string{module}))
	b.click(`#install button.primary`)
	b.sees("What this is")
	b.shot("inspected")
	b.click(`#inspection button.primary`)
	b.until(`location.pathname === "/ui/connectors/ask/connect" && document.querySelector("input[name=connectionId]") !== null`)
	eval[any](b, `document.querySelector("input[name=connectionId]").closest("details").open = true`)
	b.do(chromedp.SendKeys(chromedp.CSS(`input[name=connectionId]`), "mine"))
	b.click(`form[hx-post="/ui/connections"] button.primary`)
	b.until(`location.pathname === "/ui/connections/mine/grant"`)
	b.sees("It may ask you things while it runs")
	eval[any](b, `document.querySelectorAll("form.fields input[type=checkbox]:not([name=single])").forEach((x) => { if (!x.checked) x.click() })`)
	b.shot("grant")
	b.click(`form[hx-post="/ui/connections/mine/grant"] button.primary`)
	b.until(`location.pathname === "/ui/connections/mine/start"`)
	b.sees("Run it for the first time")
	b.shot("start")
	ask := `{"ask":[{"kind":"otp","message":"Enter the code"},{"kind":"clarification","message":"Which?","choices":["spring","autumn"]}]}`
	if _, err := h.Do(t.Context(), "PATCH", "/v1/connections/mine",
		host.ChangeConnection{Settings: []byte(ask)}, nil); err != nil {
		t.Fatal(err)
	}

	// A run and its question; the page is reloaded in between.
	b.click(`form[hx-post="/ui/runs"] button.primary`)
	id := b.runOf()
	b.sees("First run")
	b.until(`document.querySelector("#asks input[name='f.code']") !== null`)
	b.do(chromedp.Reload())
	b.until(`document.querySelector("#asks input[name='f.code']") !== null`)
	b.shot("question")
	b.do(chromedp.SendKeys(chromedp.CSS(`#asks input[name="f.code"]`), "914207"))
	b.click(`#asks article form button.primary`)
	b.until(`document.querySelector("#asks select") !== null`) // the next question came by itself
	b.shot("next")

	// Two tabs answer at once: one wins, both see that it is over.
	other := b.beside()
	other.open("/ui/inbox")
	other.until(`document.querySelector("select") !== null`)
	pick := `(() => { const s = document.querySelector("article select"); s.value = "autumn"; s.closest("form").requestSubmit() })()`
	first := make(chan error, 1)
	go func() {
		_, err := chromedp.Run(other.ctx, chromedp.Evaluate[any](pick))
		first <- err
	}()
	eval[any](b, pick)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector("#head").innerText.toLowerCase().includes("run again")`)
	other.until(`document.querySelector("article select") === null`)
	b.shot("over")
	if s, err := h.Wait(soon(t), id, served.Over); err != nil || s.Status != timeline.Completed {
		t.Errorf("%+v %v", s.Status, err)
	}
	if n := len(events(t, h.Client, id, "types=run.assistance_resolved")); n != 2 {
		t.Errorf("%d questions were answered", n)
	}
	var log json.RawMessage
	if _, err := h.Do(t.Context(), "GET", "/v1/runs/"+string(id)+"/events?limit=1000", nil, &log, "Accept",
		"application/json"); err != nil {
		t.Fatal(err)
	}
	if text := string(log); strings.Contains(text, "914207") || !strings.Contains(text, "interrupt.resolved") {
		t.Errorf("the code is in the timeline, or its question is not: %s", text)
	}

	// Another run, cancelled.
	b.expected = true
	b.click(`form[hx-post="/ui/runs"] button`)
	b.until(`location.pathname !== "/ui/runs/` + string(id) + `"`)
	b.until(`document.querySelector("#asks input[name='f.code']") !== null`)
	b.click(`button[hx-post$="/cancel"]`)
	b.until(`document.querySelector("#head").innerText.toLowerCase().includes("cancelled")`)
	oneEnd(t, h.Client, b.runOf())
	b.shot("cancelled")

	// What it collected.
	b.open("/ui/records?connection=mine&stream=answers")
	b.sees("1-otp")
	b.shot("records")
	b.click(`table.records tbody a`)
	b.until(`document.querySelector("#drawer").open && document.querySelector("#drawer a.button") !== null`)
	b.click(`#drawer a.button`)
	b.until(`location.pathname === "/ui/record"`)
	b.sees("clarification")
	for _, path := range []string{"/ui/", "/ui/inbox", "/ui/runs", "/ui/schedules", "/ui/keys", "/ui/audit",
		"/ui/settings", "/ui/connectors/ask"} {
		b.open(path)
	}
	b.clean("all pages")
	other.clean("the other tab")
}

// TestScheduleEdit: a schedule is set, refused with its field named, changed and
// paused on the page of its connection.
func TestScheduleEdit(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit"})
	b := signIn(t, h, false)
	schedule := func() (s host.Schedule) {
		if _, err := h.Do(context.WithoutCancel(t.Context()), "GET", "/v1/connections/one/schedule", nil, &s); err != nil {
			t.Error(err)
		}
		return s
	}
	form := `form[hx-post="/ui/connections/one/schedule"] `
	fill := func(cron string) {
		b.click(form + `input[value=cron]`)
		eval[any](b, `document.querySelector('`+form+`input[name=cron]').value = ""`)
		b.do(chromedp.SendKeys(chromedp.CSS(form+`input[name=cron]`), cron))
		eval[any](b, `document.querySelector('`+form+`input[name=timezone]').value = "Europe/Berlin"`)
		eval[any](b, `document.querySelector('`+form+`').dataset.sent = "yes"`)
		b.click(form + `button.primary`)
	}
	swapped := func() { // the answer replaced the form; what was asked for before that may go away again
		b.until(`document.querySelector('` + form + `') !== null && document.querySelector('` + form +
			`').dataset.sent === undefined`)
	}
	b.open("/ui/connections/one")
	fill("61 7 * * *")
	b.until(`document.querySelector('[data-wrong=cron]').textContent !== ""`)
	b.shot("refused")
	fill("0 7 * * 1-5")
	swapped()
	b.until(`document.querySelector('button[hx-post$="/schedule/pause"]') !== null`)
	if s := schedule(); s.Cron != "0 7 * * 1-5" || s.Timezone != "Europe/Berlin" || !s.Enabled {
		t.Errorf("%+v", s)
	}
	fill("30 6 * * *")
	swapped()
	b.click(`button[hx-post$="/schedule/pause"]`)
	b.until(`document.querySelector('button[hx-post$="/schedule/resume"]') !== null`)
	if s := schedule(); s.Cron != "30 6 * * *" || s.EffectiveMode != "paused" {
		t.Errorf("%+v", s)
	}
	b.shot("paused")
	b.clean("the schedule")
}

// TestFirstFolder gives a connector a directory that is chosen, not typed, and goes back on
// the way: each step shows what there is.
func TestFirstFolder(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "examples/ical")
	home := tempDir(t)
	t.Setenv("HOME", home)
	folder := filepath.Join(home, "my <b>calendars & more")
	if err := os.MkdirAll(filepath.Join(folder, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	event := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260101T100000Z\r\nSUMMARY:Tea\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	if err := os.WriteFile(filepath.Join(folder, "a.ics"), []byte(event), 0o600); err != nil {
		t.Fatal(err)
	}
	b := signIn(t, h, false)
	b.open("/ui/")
	b.click(`nav a[href="/ui/connectors"]`)
	b.sees("Read the directory calendars")
	looked(t, b, "gallery")
	b.click(`a[href="/ui/connectors/ical/connect"]`)
	b.until(`document.querySelector("input[name=displayName]") !== null`)
	looked(t, b, "review")
	b.do(chromedp.SendKeys(chromedp.CSS(`input[name=displayName]`), "Mine"))
	b.click(`form[hx-post="/ui/connections"] button.primary`)
	b.until(`location.pathname === "/ui/connections/ical/grant"`)
	b.do(chromedp.NavigateBack())
	b.until(`location.pathname === "/ui/connectors/ical/connect"`)
	b.click(`a[href="/ui/connections/ical/start"]`) // nothing is made twice
	b.sees("Decide what it may do")
	b.click(`a.primary[href="/ui/connections/ical/grant"]`)
	b.click(`[data-folder]`)
	b.until(`document.querySelector("#folders").open`)
	b.sees("my <b>calendars & more")
	looked(t, b, "folders")
	if eval[bool](b, `document.querySelector("[data-folder-take]").disabled`) != true {
		t.Error("the home can be chosen")
	}
	b.click(`.folders button`)
	b.until(`document.querySelector("[data-folder-take]").dataset.folderTake.endsWith("& more")`)
	b.click(`[data-folder-take]`)
	b.until(`!document.querySelector("#folders").open`)
	looked(t, b, "grant")
	b.click(`form[hx-post$="/grant"] button.primary`)
	b.until(`location.pathname === "/ui/connections/ical/start"`)
	looked(t, b, "start")
	b.click(`form[hx-post="/ui/runs"] button.primary`)
	id := b.runOf()
	if s, err := h.Wait(soon(t), id, served.Over); err != nil || s.Status != timeline.Completed {
		t.Errorf("%+v %v", s.Status, err)
	}
	b.sees("and has all that there was")
	b.clean("the first folder")
}
