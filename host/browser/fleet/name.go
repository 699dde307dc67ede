package fleet

import (
	"path/filepath"
	"strings"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// MaxName is how long the name of a profile may be, in bytes.
const MaxName = 64

// CheckName is the rule of B180 for names of profiles; nil when it is kept.
func CheckName(name string) *engine.Refusal {
	for i := range len(name) {
		if c := name[i]; !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return badName()
		}
	}
	if name == "" || len(name) > MaxName {
		return badName()
	}
	return nil
}

func badName() *engine.Refusal {
	return &engine.Refusal{Code: "profile_name_invalid", Verb: engine.Open, Message: "profile name required, must be [A-Za-z0-9_-]+"}
}

// Name is the first of the names that is one: of the request, of the owner's
// setting, of the manifest, and the id of the connection (B181). It is not
// rewritten to fit.
func Name(request, setting, manifest, connection string) string {
	for _, name := range []string{request, setting, manifest} {
		if name != "" {
			return name
		}
	}
	return connection
}

// isElement reports whether a text is the name of one entry of a directory that
// is none of ours, which begin with a dot.
func isElement(s string) bool {
	return s != "" && s[0] != '.' && filepath.IsLocal(s) && !strings.ContainsAny(s, "/\\\x00") && len(s) <= 200
}
