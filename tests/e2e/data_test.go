//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// TestDataPages goes the way of data: what there is, a query with a plot that is saved and
// downloaded, a destination that is added, synced and forgotten.
func TestDataPages(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 60, "text": "something"})
	ended(t, h.Client, "one")
	b := signIn(t, h, false)
	b.open("/ui/")
	b.click(`nav a[href="/ui/data"]`)
	b.sees("Changes in 7 days")
	looked(t, b, "data")

	b.click(`a[href="/ui/records?connection=one&stream=items"]`)
	b.until(`document.querySelectorAll(".sift .plot rect.accent").length === 1`)
	b.click(`[data-drawer]`)
	b.until(`document.querySelector("#drawer").open && document.querySelector("#drawer dl") !== null`)
	looked(t, b, "drawer")
	b.click(`#drawer button`)
	b.until(`!document.querySelector("#drawer").open`)
	field := eval[string](b, `document.querySelector(".sieves input[name^='min.']:not([type=date])").name`)
	b.click(`.sift input[name="` + field + `"]`)
	b.do(chromedp.KeyEvent("51"))
	eval[any](b, `document.querySelector(".sieves input[name=col]").checked = true`)
	looked(t, b, "filters")
	b.click(`.sift button.primary`)
	b.until(`location.search.includes("` + field + `=51") && document.querySelector(".sift .plot") !== null`)
	b.sees("of 60 records in items")
	if n := eval[int](b, `document.querySelectorAll("table.records tbody tr").length`); n == 0 || n > 10 {
		t.Errorf("the filter leaves %d records", n)
	}
	looked(t, b, "filtered")
	got := eval[string](b, `fetch(document.querySelector("a[download][href*=csv]").href).then((r) => r.text())`)
	if n, rows := strings.Count(got, "\n"),
		eval[int](b, `document.querySelectorAll("table.records tbody tr").length`); n != rows+1 {
		t.Errorf("the file of the view has %d lines for %d records", n, rows)
	}

	b.click(`.tabs a[href="/ui/data/sql"]`)
	b.sees("one.items") // the table, once the copy is there
	b.do(chromedp.SendKeys(chromedp.CSS(`#sql textarea`), `SELECT _version, length(_key) AS size, _key FROM one.items`))
	b.click(`#sql button.primary`)
	b.sees("60 rows in")
	eval[any](b, `(() => { document.querySelector("select[name=y]").value = "size"; document.querySelector("select[name=x]").value = "_version" })()`)
	b.click(`#found button[form=sql]`)
	b.until(`document.querySelector("#found .plot path.line") !== null`)
	looked(t, b, "sql")
	b.do(chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "sizes"))
	b.click(`form[hx-post="/ui/data/sql/save"] button`)
	b.until(`location.search === "?saved=sizes" && document.querySelector("#found table") !== null`) // it runs by itself
	got = eval[string](b, `fetch(document.querySelector("#found a[download]").href).then((r) => r.text())`)
	if lines := strings.Split(strings.TrimSpace(got), "\n"); len(lines) != 61 || lines[0] != "_version,size,_key" {
		t.Errorf("the file has %d lines: %.200s", len(lines), got)
	}

	b.open("/ui/data/destinations")
	b.sees("Data goes nowhere yet")
	file := filepath.Join(tempDir(t), "out.db")
	form := `form[hx-post="/ui/data/destinations"]`
	b.do(chromedp.SendKeys(chromedp.CSS(form+` [name=name]`), "out"),
		chromedp.SendKeys(chromedp.CSS(form+` [name=url]`), "nonsense"))
	b.click(form + ` button.primary`)
	b.until(`document.querySelector('` + form + ` [data-wrong=url]').textContent !== ""`)
	eval[any](b, `document.querySelector('`+form+` [name=url]').value = ""`)
	b.do(chromedp.SendKeys(chromedp.CSS(form+` [name=url]`), "sqlite:"+file))
	b.click(form + ` button.primary`)
	b.until(`document.querySelector('#destinations [hx-post$="/out/sync"]') !== null`)
	b.click(`#destinations [hx-post$="/out/sync"]`)
	b.sees("up to date")
	looked(t, b, "destinations")
	eval[any](b, `(() => { const x = document.querySelector("#tables-out"); x.open = true; x.dataset.before = "" })()`)
	ended(t, h.Client, "one")
	b.until(`document.querySelector("#tables-out").dataset.before === undefined`) // drawn anew
	if !eval[bool](b, `document.querySelector("#tables-out").open`) {
		t.Error("what was opened is closed by what comes")
	}
	b.click(`#destinations [hx-post$="/out/pause"]`)
	b.until(`document.querySelector('#destinations [hx-post$="/out/resume"]') !== null`)
	b.open("/ui/data/destinations")
	b.mu.Lock()
	b.expected = true // the question before it is forgotten
	b.mu.Unlock()
	b.click(`#destinations [hx-post$="/out/remove"]`)
	b.sees("Data goes nowhere yet")
	b.clean("data")
}

// TestAssistantPages lets an assistant in, allows a call that waits, and revokes it.
func TestAssistantPages(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 3, "text": "something"})
	ended(t, h.Client, "one")
	b := signIn(t, h, false)
	b.open("/ui/data")
	b.click(`.tabs a[href="/ui/assistants"]`)
	b.sees("No assistants")
	form := `form[hx-post="/ui/assistants"]`
	b.do(chromedp.SendKeys(chromedp.CSS(form+` [name=name]`), "notes"))
	b.click(form + ` button.primary`)
	b.until(`document.querySelector('` + form + ` [data-wrong=connections]').textContent !== ""`)
	b.click(form + ` [name=connections][value=one]`)
	b.click(form + ` [name=ask]`)
	b.click(form + ` button.primary`)
	b.until(`document.querySelector("#made input[readonly]").value.startsWith("sla_")`)
	looked(t, b, "assistant-made")
	b.click(`#made a[href="/ui/assistants/notes"]`)
	b.sees("None yet.")

	replied := make(chan string, 1)
	go func() {
		var out json.RawMessage
		_, err := h.Do(t.Context(), "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": "list_records",
				"arguments": map[string]any{"connection": "one", "stream": "items"}}}, &out,
			"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-11-25", web.HeaderAssistant, "notes")
		replied <- fmt.Sprintf("%s %v", out, err)
	}()
	b.sees("waits for you")
	looked(t, b, "assistant-waits")
	b.click(`#calls [hx-post$="/approve"]`)
	if answer := <-replied; !strings.Contains(answer, "something") {
		t.Errorf("%.500s", answer)
	}
	b.until(`document.querySelector("#calls").textContent.includes("done")`)
	b.mu.Lock()
	b.expected = true // the question before it is revoked
	b.mu.Unlock()
	b.click(`[hx-post="/ui/assistants/notes/revoke"]`)
	b.sees("revoked")
	b.open("/ui/assistants")
	looked(t, b, "assistants")
	b.clean("assistants")
}

// TestRunPages looks at the overview, the runs and one of each kind of run.
func TestRunPages(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 3000}, step{"do": "otp", "text": "Code?"})
	connect(t, h.Client, "two", step{"do": "emit", "n": 3}, step{"do": "fail", "text": "The service said no"})
	for range 3 {
		ended(t, h.Client, "two")
	}
	asking := start(t, h.Client, "one")
	if _, err := h.Wait(soon(t), asking, served.Asks); err != nil {
		t.Fatal(err)
	}
	b := signIn(t, h, false)
	b.open("/ui/")
	b.sees("Runs today")
	if n := eval[int](b, `document.querySelectorAll("td .plot a").length`); n != 4 {
		t.Errorf("%d bars lead to runs", n)
	}
	looked(t, b, "overview")
	b.click(`td .plot a[href]`)
	b.until(`location.pathname.startsWith("/ui/runs/run_") && document.querySelector(".verdict") !== null`)
	b.open("/ui/runs/" + string(asking))
	b.until(`document.querySelectorAll(".gantt li").length >= 2`)
	looked(t, b, "asking")
	b.click(`nav a[href="/ui/runs"]`)
	b.click(`.chips a[href*="status=failed"]`)
	b.until(`location.search.includes("status=failed") && document.querySelectorAll("#runs tbody tr").length === 3`)
	looked(t, b, "runs")
	b.click(`#runs tbody th a`)
	b.sees("It failed: ")
	looked(t, b, "failed")
	b.clean("runs")
}
