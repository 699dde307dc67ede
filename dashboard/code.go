package dashboard

import (
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/timeline"
)

// isCode reports whether a field of a question takes a one-time code: what a phone
// offers from a message, and what is read off and typed. It is shown as it is typed,
// since it is of no use to anybody a moment later; a password beside it is not.
func isCode(i timeline.Item, f timeline.FormField) bool {
	text := f.Type == "" || f.Type == "string" || f.Type == "integer"
	return i.Kind == abi.KindOTP && text && len(f.Enum) == 0 && f.Format != "password" && !strings.Contains(strings.ToLower(f.Name), "pass") &&
		(f.Secret || f.Type == "integer")
}
