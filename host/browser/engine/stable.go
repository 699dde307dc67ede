package engine

import (
	"regexp"
	"strings"

	"github.com/sluicehost/sluice/host/browser/page"
)

// StableID is what a developer called the element: its test attribute, its name, or
// an id that does not look generated; "" for none (B108). It is never made of text
// or position.
func StableID(n *page.Node) string {
	switch {
	case n.TestID != "":
		return n.TestID
	case n.NameAtt != "":
		return n.NameAtt
	case n.ID != "" && !generated(n.ID):
		return n.ID
	}
	return ""
}

// Ids that a program made up: long numbers, and the prefixes of frameworks.
var (
	longNumber = regexp.MustCompile(`[0-9]{5}`)
	framework  = regexp.MustCompile(`^(?i:ember|ext-gen|yui_|react-|radix-|headlessui-|mui-|mat-|cdk-|ng-|__next|gwt-|isc_|chakra-|rc_|downshift-|aria-|j_id|ctl00|:?r[0-9a-z]*:|«r[0-9a-z]*»)`)
	hashPart   = regexp.MustCompile(`[0-9a-zA-Z]+`)
	hexOnly    = regexp.MustCompile(`^[0-9a-fA-F]+$`)
)

func generated(id string) bool {
	if longNumber.MatchString(id) || framework.MatchString(id) {
		return true
	}
	for _, part := range hashPart.FindAllString(id, -1) {
		if hashLike(part) {
			return true
		}
	}
	return false
}

// hashLike reports a run that no person would type: eight or more hexadecimal
// digits, or ten or more letters, with digits and letters changing at least four
// times.
func hashLike(part string) bool {
	digits, turns := 0, 0
	for i := range len(part) {
		if isDigit(part[i]) {
			digits++
		}
		if i > 0 && isDigit(part[i]) != isDigit(part[i-1]) {
			turns++
		}
	}
	if digits == 0 || digits == len(part) {
		return false
	}
	return len(part) >= 8 && hexOnly.MatchString(part) && turns >= 2 || len(part) >= 10 && turns >= 4
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// selectorOf describes n so that it can be found again, best description first.
func selectorOf(n *page.Node) Selector {
	s := page.Selector{}
	switch {
	case n.TestID != "":
		s.TestID = n.TestID
	case n.NameAtt != "":
		s.CSS = n.Tag + `[name="` + cssQuote(n.NameAtt) + `"]`
	case n.ID != "" && !generated(n.ID):
		s.ID = n.ID
	case n.Role != "" && n.Name != "":
		s.Role, s.Name = n.Role, n.Name
	case n.Label != "":
		s.Label = n.Label
	case n.Text != "":
		s.Text = n.Text
	case n.Role != "":
		s.Role = n.Role
	default:
		s.CSS = n.Tag
	}
	return Selector{Selector: s}
}

// cssQuote escapes text for a string of CSS in double quotes.
func cssQuote(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\` + string("0123456789abcdef"[r>>4&15]) + string("0123456789abcdef"[r&15]) + " ")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
