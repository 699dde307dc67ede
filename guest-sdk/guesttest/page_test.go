package guesttest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

// The fake browser chooses several options, no others, and names the tab that a click
// opens.
func TestPagesOfManyOptionsAndTabs(t *testing.T) {
	list := &guesttest.Element{Role: "listbox", Name: "Fruit", Options: []string{"Apple", "Pear", "Plum"}, Multiple: true,
		Chosen: []string{"Apple"}}
	pages := &guesttest.Pages{Load: func(string) *guesttest.Page {
		return &guesttest.Page{Elements: []*guesttest.Element{list, {Role: "link", Name: "Statement", Opens: "tab_2"}}}
	}}
	call := func(request string) string {
		t.Helper()
		reply, err := pages.Call([]byte(request))
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Success bool
			Code    string `json:"failure_code"`
			Details json.RawMessage
		}
		if err := json.Unmarshal(reply, &out); err != nil {
			t.Fatal(err)
		}
		if out.Success {
			return string(out.Details)
		}
		return out.Code
	}
	if _, err := pages.Call([]byte(`{"verb":"open","url":"https://a.test/"}`)); err != nil {
		t.Fatal(err)
	}
	const fruit = `"target":{"selector":{"name":"Fruit"}}`
	want := `"expect":{"kind":"selected","equals":["Pear","Plum"],` + fruit + `}`
	if got := call(`{"verb":"select",` + fruit + `,"options":[{"label":"pear"},{"index":2}],` + want + `}`); got != "{}" ||
		strings.Join(list.Chosen, " ") != "Pear Plum" {
		t.Errorf("%s: %v", got, list.Chosen)
	}
	if got := call(`{"verb":"select",` + fruit + `,"options":[{"label":"Fig"}]}`); got != "ELEMENT_NOT_FOUND" {
		t.Errorf("an option that is not there: %s", got)
	}
	if got := call(`{"verb":"select",` + fruit + `,"option":{"label":"Plum"}}`); got != "SEMANTIC_MISMATCH" {
		t.Errorf("one of a list of many: %s", got)
	}
	const link = `{"verb":"click","target":{"selector":{"name":"Statement"}},"expect":{"kind":"tab"}}`
	if got := call(link); got != `{"popups":[{"tab_id":"tab_2"}]}` {
		t.Errorf("a click that opens a tab: %s", got)
	}
}
