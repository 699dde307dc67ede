package egress

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// ErrEntry is wrapped by the errors of ParseEntry.
var ErrEntry = errors.New("not a network entry")

const entryShape = "[http://|https://]HOST[:PORT], where HOST is a name, *.NAME, an IPv4 address or an IPv6 address in brackets"

// An Entry is one host that an owner approved, written [http://|https://]HOST[:PORT].
// Entries are comparable.
type Entry struct {
	Scheme   string // http or https
	Host     string // canonical; without "*." if Wildcard
	Wildcard bool   // every name below Host, at any depth, but not Host
	Port     uint16 // never 0
	// Private permits addresses that are not public. No text sets it; the owner does,
	// separately. Policies ignore it for a wildcard.
	Private bool
}

// ParseEntry parses an entry of a manifest or an owner. Defaults are https and port 443, or
// 80 for http. A wildcard cannot be above a public suffix, special name or address. The
// error is ErrEntry.
func ParseEntry(s string) (Entry, error) {
	e, err := parseEntry(s)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %.80q: %w (write %s)", ErrEntry, s, err, entryShape)
	}
	return e, nil
}

func parseEntry(s string) (Entry, error) {
	e := Entry{Scheme: "https"}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		rest = s
	} else if e.Scheme = scheme; scheme != "http" && scheme != "https" {
		return e, errors.New("the scheme is neither http nor https")
	}
	if strings.ContainsAny(rest, `/\?#@`) {
		return e, errors.New("a path, query, fragment or user does not belong here")
	}
	host, port, ok, err := cutPort(rest)
	if err != nil {
		return e, err
	}
	if e.Port = defaultPort(e.Scheme); ok {
		if e.Port, err = parsePort(port); err != nil {
			return e, err
		}
	}
	host, e.Wildcard = strings.CutPrefix(host, "*.")
	if host == "*" {
		return e, errors.New("* alone would be every host")
	}
	if e.Host, err = canonicalHost(host); err != nil {
		return e, err
	}
	if e.Wildcard {
		err = checkWildcard(e.Host)
	}
	return e, err
}

// cutPort splits off the port; ok says whether there is one.
func cutPort(s string) (host, port string, ok bool, err error) {
	if strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ']') + 1
		switch rest := s[i:]; {
		case i == 0:
			return "", "", false, errors.New("a bracket is not closed")
		case rest == "":
			return s, "", false, nil
		case rest[0] == ':':
			return s[:i], rest[1:], true, nil
		}
		return "", "", false, errors.New("only a port may follow the bracket")
	}
	host, port, ok = strings.Cut(s, ":")
	if strings.Contains(port, ":") {
		return "", "", false, errors.New("IPv6 needs brackets")
	}
	return host, port, ok, nil
}

// parsePort parses a port in its canonical spelling.
func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, errors.New("the port is not a number from 1 to 65535")
	}
	return uint16(n), nil
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// checkWildcard refuses suffixes below which names have many owners or no fixed meaning.
func checkWildcard(suffix string) error {
	below := "any-name." + suffix
	if Special(suffix) || Special(below) {
		return errors.New("a wildcard cannot stand for addresses, single labels and special names: spell the host")
	}
	// The list has rules such as *.kawasaki.jp, although kawasaki.jp is not a public
	// suffix.
	for _, name := range []string{suffix, below} {
		if public, _ := publicsuffix.PublicSuffix(name); public == name {
			return fmt.Errorf("names below %s belong to different owners: spell the host", suffix)
		}
	}
	return nil
}

// String returns the shortest text from which ParseEntry parses the entry. It omits
// Private.
func (e Entry) String() string {
	var b strings.Builder
	if e.Scheme != "https" {
		b.WriteString(e.Scheme + "://")
	}
	if e.Wildcard {
		b.WriteString("*.")
	}
	if strings.Contains(e.Host, ":") {
		b.WriteString("[" + e.Host + "]")
	} else {
		b.WriteString(e.Host)
	}
	if e.Port != defaultPort(e.Scheme) {
		b.WriteString(":" + strconv.Itoa(int(e.Port)))
	}
	return b.String()
}

// covers reports whether the entry includes a canonical host.
func (e Entry) covers(host string) bool {
	if !e.Wildcard {
		return e.Host == host
	}
	return strings.HasSuffix(host, "."+e.Host) && !Special(host)
}

// A Policy is what one connection may reach. The zero Policy permits nothing. It is
// immutable and safe for concurrent use.
type Policy struct {
	// Invariant: each is a result of ParseEntry, apart from Private, and no wildcard is
	// Private.
	entries []Entry
}

// NewPolicy permits what any of the entries permits. Invalid entries permit nothing.
func NewPolicy(entries ...Entry) *Policy {
	p := &Policy{}
	for _, e := range entries {
		e.Private = e.Private && !e.Wildcard
		read, err := ParseEntry(e.String())
		read.Private = e.Private
		if err == nil && read == e && !slices.Contains(p.entries, e) {
			p.entries = append(p.entries, e)
		}
	}
	return p
}

// Match returns the entry that permits scheme://host:port, preferably one that is Private.
// If there is none, step says what is missing: "host" if no entry has the host, "scheme" if
// one has it with another scheme only, "port" if host and scheme occur with other ports
// only. A host that is not canonical matches nothing.
func (p *Policy) Match(scheme, host string, port uint16) (e Entry, step string) {
	if c, err := CanonicalHost(host); err != nil || c != host {
		return Entry{}, "host"
	}
	step = "host"
	for _, o := range p.entries {
		switch {
		case !o.covers(host):
		case o.Scheme != scheme:
			if step == "host" {
				step = "scheme"
			}
		case o.Port != port:
			if step != "" {
				step = "port"
			}
		case step != "" || o.Private:
			e, step = o, ""
		}
	}
	return e, step
}

// PolicyOf returns the policy for an owner's approvals. Exactly spelled addresses and
// special names may lead to private addresses. The error is ErrEntry.
func PolicyOf(approved []string) (*Policy, error) {
	var entries []Entry
	for _, text := range approved {
		e, err := ParseEntry(text)
		if err != nil {
			return nil, fmt.Errorf("approved host: %w", err)
		}
		e.Private = !e.Wildcard && Special(e.Host)
		entries = append(entries, e)
	}
	return NewPolicy(entries...), nil
}

// Missing returns the hosts of a manifest that the policy does not cover.
func (p *Policy) Missing(wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(text string) bool {
		e, err := ParseEntry(text)
		return err == nil && p.Covers(e)
	})
}

// Covers reports whether the policy permits everything that the entry does.
func (p *Policy) Covers(e Entry) bool {
	for _, o := range p.entries {
		if o.Scheme != e.Scheme || o.Port != e.Port {
			continue
		}
		switch {
		case !e.Wildcard && o.covers(e.Host):
			return true
		case e.Wildcard && o.Wildcard && (o.Host == e.Host || o.covers(e.Host)):
			return true
		}
	}
	return false
}
