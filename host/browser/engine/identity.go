package engine

import (
	"container/list"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxResolved bounds the table of resolved elements.
const maxResolved = 256

// An Identity hands out the element ids of one surface and remembers what they stand for. An id is
// valid while it belongs to the latest snapshot or to the 256 elements resolved last. It is safe
// for concurrent use.
type Identity struct {
	mu       sync.Mutex // guards all below
	last     uint64
	snapshot map[string]record
	resolved map[string]*list.Element // of record, most recently used first
	order    *list.List
}

// A record identifies one element of one document.
type record struct {
	id       string
	document string
	ref      page.Ref
	role     string
	name     string
	stable   string
	ordinal  int
	selector Selector
}

// NewIdentity returns an empty Identity.
func NewIdentity() *Identity {
	return &Identity{resolved: map[string]*list.Element{}, order: list.New()}
}

// Holds reports whether an id may still stand for an element of document. If not, it is a
// STALE_REFERENCE without a look at the page.
func (d *Identity) Holds(elementID, document string) bool {
	r, ok := d.record(elementID)
	return ok && r.document == document
}

// Ref returns the node that an id stands for.
func (d *Identity) Ref(elementID string) (page.Ref, bool) {
	r, ok := d.record(elementID)
	return r.ref, ok
}

// Forget makes every id stale.
func (d *Identity) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.snapshot = nil
	d.resolved = map[string]*list.Element{}
	d.order.Init()
}

func (d *Identity) record(elementID string) (record, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.resolved[elementID]; ok {
		d.order.MoveToFront(e)
		return e.Value.(record), true
	}
	r, ok := d.snapshot[elementID]
	return r, ok
}

// keep adds an element to the table of resolved elements and returns its id.
func (d *Identity) keep(l *Look, n *page.Node) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.named(recordOf(l, n))
	if e, ok := d.resolved[r.id]; ok {
		d.order.MoveToFront(e)
		return r.id
	}
	d.resolved[r.id] = d.order.PushFront(r)
	for d.order.Len() > maxResolved {
		oldest := d.order.Back()
		delete(d.resolved, d.order.Remove(oldest).(record).id)
	}
	return r.id
}

// renew replaces the previous snapshot's ids by ids for these nodes, in order.
func (d *Identity) renew(l *Look, nodes []*page.Node) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	fresh, ids := make(map[string]record, len(nodes)), make([]string, len(nodes))
	known := d.known()
	for i, n := range nodes {
		r := recordOf(l, n)
		r = d.namedFrom(known, r)
		fresh[r.id], ids[i] = r, r.id
	}
	d.snapshot = fresh
	return ids
}

// known returns all ids by the element that they stand for.
func (d *Identity) known() map[record]string {
	known := make(map[record]string, len(d.snapshot)+len(d.resolved))
	for id, r := range d.snapshot {
		known[r.key()] = id
	}
	for id, e := range d.resolved {
		known[e.Value.(record).key()] = id
	}
	return known
}

// named gives r the id of the same element, or a new one. An element of which any part changed is
// another one.
func (d *Identity) named(r record) record {
	for id, e := range d.resolved {
		if e.Value.(record).key() == r.key() {
			r.id = id
			return r
		}
	}
	for id, s := range d.snapshot {
		if s.key() == r.key() {
			r.id = id
			return r
		}
	}
	return d.namedFrom(nil, r)
}

func (d *Identity) namedFrom(known map[record]string, r record) record {
	if id, ok := known[r.key()]; ok {
		r.id = id
		return r
	}
	d.last++
	r.id = "el_" + strconv.FormatUint(d.last, 36)
	return r
}

// key returns the parts of r that identity compares.
func (r record) key() record {
	r.id, r.selector = "", Selector{}
	return r
}

func recordOf(l *Look, n *page.Node) record {
	return record{
		document: l.Document, ref: n.Ref, role: n.Role, name: n.Name, stable: StableID(n), ordinal: n.Ordinal,
		selector: selectorOf(n),
	}
}

// same reports whether n is the element that r stands for.
func (r record) same(l *Look, n *page.Node) bool { return recordOf(l, n).key() == r.key() }

// alike reports whether n could replace r: it has the same role, name and stable id.
func (r record) alike(n *page.Node) bool {
	return n.Role == r.role && n.Name == r.name && StableID(n) == r.stable
}

// StableID returns the name that a developer gave the element: its test attribute, its name, or an
// id that does not look generated; "" if there is none. It never uses text or position.
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

// Patterns of generated ids: long numbers, and the prefixes of frameworks.
var (
	longNumber = lazily(`[0-9]{5}`)
	framework  = lazily(
		`^(?i:ember|ext-gen|yui_|react-|radix-|headlessui-|mui-|mat-|cdk-|ng-|__next|gwt-|isc_|chakra-|rc_|downshift-|aria-|j_id|ctl00|:?r[0-9a-z]*:|«r[0-9a-z]*»)`)
	hashPart = lazily(`[0-9a-zA-Z]+`)
	hexOnly  = lazily(`^[0-9a-fA-F]+$`)
)

func generated(id string) bool {
	if longNumber().MatchString(id) || framework().MatchString(id) {
		return true
	}
	for _, part := range hashPart().FindAllString(id, -1) {
		if hashLike(part) {
			return true
		}
	}
	return false
}

// hashLike reports whether a part looks like a hash: eight or more hexadecimal digits, or ten or
// more characters, that alternate between letters and digits at least four times.
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
	return len(part) >= 8 && hexOnly().MatchString(part) && turns >= 2 || len(part) >= 10 && turns >= 4
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// selectorOf returns a description by which n can be found again, the best kind first.
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

// lazily compiles an expression when it is first used: it would cost every start of the program and of a worker.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
