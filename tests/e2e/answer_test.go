package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/tests/e2e/served"
)

// TestAnswersOnAPage: a question for a file accepts one that is not too large; the
// owner sends a text back once, then edits and approves it.
func TestAnswersOnAPage(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "examples/ask")
	ask := `{"ask":[{"kind":"clarification","message":"The statement, please","file":".csv"},
		{"kind":"approval","message":"Send this?","draft":"Dear customer"},{"kind":"approval","message":"Then this?","draft":"Dear friend"}]}`
	if err := h.Connect(t.Context(), "ask", "mine", json.RawMessage(ask)); err != nil {
		t.Fatal(err)
	}
	b := signIn(t, h, false)
	id := start(t, h.Client, "mine")
	b.open("/ui/runs/" + string(id))
	dir := tempDir(t)
	file := func(name string, size int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	choose := func(path string) {
		b.until(`document.querySelector("#asks input[type=file]") !== null`)
		b.do(chromedp.SetUploadFiles(chromedp.CSS(`#asks input[type=file]`), []string{path}))
	}
	choose(file("large.csv", 512<<10+1))
	b.until(`document.querySelector("#asks input[type=file]").validationMessage === "At most 512 KiB"`)
	choose(file("a b.csv", 300<<10))
	b.until(`document.querySelector("#asks input[name='f.answer']").value.length > 400000`)
	b.shot("file")
	b.click(`#asks article form button.primary`)

	b.until(`document.querySelector("#asks textarea")?.value === "Dear customer"`)
	b.shot("draft")
	b.click(`#asks button[value=refine]`)
	b.until(`document.querySelector("#asks [data-wrong='f.comment']").textContent !== ""`)
	b.do(chromedp.SendKeys(chromedp.CSS(`#asks input[name="f.comment"]`), "friendlier"))
	b.click(`#asks button[value=refine]`)
	b.until(`document.querySelector("#asks textarea")?.value === "Dear friend"`)
	eval[any](b, `document.querySelector("#asks textarea").value = "Hello"`)
	b.click(`#asks button[value="edit-accept"]`)
	if _, err := h.Wait(soon(t), id, served.Over); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Data []struct {
			Data struct{ Text, Outcome string }
		}
	}
	if _, err := h.Do(t.Context(), "GET", "/v1/connections/mine/streams/answers/records", nil, &got); err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, r := range got.Data {
		said += r.Data.Outcome + " " + r.Data.Text + "; "
	}
	for _, want := range []string{"given a b.csv, 307200 bytes; ", "to be refined friendlier; ", "accepted Hello; "} {
		if !strings.Contains(said, want) {
			t.Errorf("the connector got %q, which lacks %q", said, want)
		}
	}
	b.clean("answers")
}
