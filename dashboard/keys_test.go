package dashboard

import "testing"

// Whoever makes a key can read what each scope is good for.
func TestScopesSaid(t *testing.T) {
	said := map[string]bool{}
	for _, c := range scopeChoices() {
		if c.May == "" || said[c.May] {
			t.Errorf("%s: %q says nothing of its own", c.Scope, c.May)
		}
		said[c.May] = true
	}
	if len(said) != len(scopeWords) {
		t.Errorf("%d scopes, words for %d", len(said), len(scopeWords))
	}
}
