package api_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// Destinations are the owner's, and no answer has what is secret of their URLs; queries
// are for keys too, and see what the key sees.
func TestDestinations(t *testing.T) {
	c := served(t)
	browser := c.as("")
	own, _ := session(t, c.base)
	at := "/v1/destinations"
	c.do("GET", at, nil).want(403, "forbidden")
	c.do("POST", at, object{"name": "out", "url": "sqlite:/tmp/x.db"}).want(403, "forbidden")
	path := filepath.Join(t.TempDir(), "out.db")
	made := browser.do("POST", at, object{"name": "out", "url": "sqlite:" + path, "mode": "history"}, own...).want(201)
	if made.header.Get("Location") != at+"/out" || made.text("mode") != "history" {
		t.Errorf("%v %s", made.header, made.body)
	}
	browser.do("POST", at, object{"name": "out", "url": "sqlite:" + path}, own...).want(409, "conflict")
	browser.do("POST", at, object{"name": "two", "url": "sqlite:" + path}, own...).want(409, "destination_claimed")
	browser.do("POST", at, object{"name": "two", "url": "sqlite:out.db"}, own...).want(400, "validation_error")
	browser.do("POST", at, object{"name": "two", "url": "ftp://x"}, own...).want(400, "validation_error")
	browser.do("POST", at, object{"name": "two", "url": "sqlite:/proc/none/x.db"}, own...).want(422,
		"destination_unavailable")
	if a := browser.do("GET", at, nil, own...).want(200); !strings.Contains(string(a.body), `"name":"out"`) {
		t.Errorf("%s", a.body)
	}
	browser.do("GET", at+"/none", nil, own...).want(404, "not_found")
	browser.do("GET", at+"/out", nil, own...).want(200)
	if a := browser.do("POST", at+"/out:sync", nil, own...).want(200); a.member("syncedAt") == nil ||
		a.member("error") != nil {
		t.Errorf("%s", a.body)
	}
	browser.do("POST", at+"/out:pause", nil, own...).want(200)
	if a := browser.do("GET", at+"/out", nil, own...).want(200); a.text("state") != "paused" {
		t.Errorf("%s", a.body)
	}
	browser.do("POST", at+"/out:resume", nil, own...).want(200)
	browser.do("POST", at+"/out:rebuild", object{"connectionId": "x"}, own...).want(400, "validation_error")
	browser.do("POST", at+"/out:rebuild", object{}, own...).want(200)
	browser.do("POST", at+"/out:rotate", object{"secret": strings.Repeat("n", 32)}, own...).want(409, "conflict")
	browser.do("DELETE", at+"/out", nil, own...).want(204)
	browser.do("GET", at+"/out", nil, own...).want(404, "not_found")

	hook := "webhook:http://127.0.0.1:1/in#" + strings.Repeat("o", 32)
	browser.do("POST", at, object{"name": "hook", "url": hook, "cron": "0 0 1 1 *"}, own...).want(201)
	browser.do("POST", at+"/hook:rotate", object{"secret": "short"}, own...).want(400, "validation_error")
	c.do("POST", at+"/hook:rotate", object{"secret": strings.Repeat("n", 32)}).want(403, "forbidden")
	a := browser.do("POST", at+"/hook:rotate", object{"secret": strings.Repeat("n", 32)}, own...).want(200)
	if a.member("previousSecretUntil") == nil || strings.Contains(string(a.body), "nnn") ||
		strings.Contains(string(a.body), "ooo") {
		t.Errorf("%s", a.body)
	}
}

// TestSearch: over the API a search sees the connections of its key.
func TestSearch(t *testing.T) {
	c := served(t)
	if a := c.do("GET", "/v1/search?q=nothing&connectionId=x&stream=y&limit=5",
		nil).want(200); !strings.Contains(string(a.body), `"data":[],"more":false`) {
		t.Errorf("%s", a.body)
	}
	c.do("GET", "/v1/search?q=-word", nil).want(400, "validation_error")
	c.do("GET", "/v1/search?q="+strings.Repeat("x", 1001), nil).want(400, "validation_error")
	c.do("GET", "/v1/search?q=x&limit=101", nil).want(400, "validation_error")
	c.do("GET", "/v1/search?words=x", nil).want(400, "validation_error")
}

// TestQueries: over the API a query sees the connections of its key.
func TestQueries(t *testing.T) {
	c := served(t)
	c.do("GET", "/v1/tables", nil).want(200)
	if a := c.do("POST", "/v1/query",
		object{"sql": "SELECT 1 AS one, 'x' AS two"}).want(200); !strings.Contains(string(a.body), `"rows":[[1,"x"]]`) {
		t.Errorf("%s", a.body)
	}
	c.do("POST", "/v1/query", object{"sql": "DELETE FROM x"}).want(422, "query_invalid")
	c.do("POST", "/v1/query", object{"sql": "VACUUM"}).want(422, "query_denied")
	c.do("POST", "/v1/query", object{"sql": "SELECT 1", "rows": -1}).want(400, "validation_error")
	c.do("POST", "/v1/query", object{"sql": "SELECT 1", "only": []string{"x"}}).want(400, "validation_error")
}
