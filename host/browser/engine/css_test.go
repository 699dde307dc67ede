package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// TestCSSAttributes: a selector asks for no attribute that may not be read, however it
// is written; others are left alone.
func TestCSSAttributes(t *testing.T) {
	for css, refused := range map[string]bool{
		`[value^="a"]`:                        true,
		`input[ VALUE *= a i]`:                true,
		`input[*|value]`:                      true,
		`input[|value]`:                       true,
		`input[ns|value|=a]`:                  true,
		`input[\76 alue^="a"]`:                true,
		`input[\000076alue]`:                  true,
		`input[\56 alue]`:                     true,
		`input[\v\61lue^="a"]`:                true,
		"input[\\76\r\nalue]":                 true,
		`input[/* x */value/**/^="a"]`:        true,
		`a[title="/*"][value^="x"][rel="*/"]`: true,
		`a[title="]"] [value]`:                true,
		`a[title='\']'][value]`:               true,
		"a[title=\"x\n][value]":               true,
		`:is(p, :not([value]))`:               true,
		`:has(> input[value="x"])`:            true,
		`input[value`:                         true,
		`[style]`:                             true,
		`[onclick]`:                           true,
		`[srcdoc*=a]`:                         true,
		`a[href^="/value"]`:                   false,
		`a[title="[value]"]`:                  false,
		`#value .value value`:                 false,
		`[data-value="1"]`:                    false,
		`[valuenow]`:                          false,
		`/* [value] */ p`:                     false,
		`#\[value`:                            false,
		`a[data-x|="value"]`:                  false,
		`[`:                                   false,
		`\`:                                   false,
		`"`:                                   false,
	} {
		raw, _ := json.Marshal(map[string]any{"verb": "click", "target": map[string]any{"selector": map[string]any{"css": css}}})
		_, refusal := engine.Parse(raw)
		if (refusal != nil) != refused || refused && !strings.Contains(refusal.Message, "css") {
			t.Errorf("%s: %v", css, refusal)
		}
	}
}
