package api_test

import (
	"strings"
	"testing"
)

// Logins, and attempts, are in the audit log under names that it has.
func TestLoginsAreAudited(t *testing.T) {
	c := served(t)
	own := []option{header("Origin", c.base), header("Sec-Fetch-Site", "same-origin")}
	login, err := shared.d.Server.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(login.URL, "#")
	c.as("").do("POST", "/ui/session", `{"token":"wrong"}`, own...).want(401)
	c.as("").do("POST", "/ui/session", `{"token":"`+token+`"}`, own...).want(200)
	for _, action := range []string{"login.failed", "session.created"} {
		eventually(t, action, func() bool {
			return len(c.do("GET", "/v1/audit?action="+action, nil).want(200).list("data")) > 0
		})
	}
}
