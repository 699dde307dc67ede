package network

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// ErrEntry is the error of ParseEntry, wrapped with the reason.
var ErrEntry = errors.New("not a network entry")

const entryShape = "[http://|https://]HOST[:PORT], where HOST is a name, *.NAME, an IPv4 address or an IPv6 address in brackets"

// An Entry is one host that an owner approved, written
// [http://|https://]HOST[:PORT]. Entries can be compared with ==.
type Entry struct {
	Scheme   string // http or https
	Host     string // canonical; the suffix without "*." when Wildcard
	Wildcard bool   // every name below Host at any depth, but not Host
	Port     uint16 // never 0
	// Private lets the entry reach addresses that are not public. No
	// text sets it: the owner does, in a step of its own. Policies ignore it
	// on a wildcard.
	Private bool
}

// ParseEntry reads an entry of a manifest or an owner. The scheme is https and
// the port 443, or 80 after http://, unless the text says otherwise. A wildcard
// stands above no public suffix, special name or address. The error is ErrEntry.
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

// cutPort takes the port off; ok says whether there was one.
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

// parsePort reads a port in its only spelling.
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

// checkWildcard refuses suffixes below which the names have many owners or no
// fixed meaning.
func checkWildcard(suffix string) error {
	below := "any-name." + suffix
	if Special(suffix) || Special(below) {
		return errors.New("a wildcard cannot stand for addresses, single labels and special names: spell the host")
	}
	// The list has rules such as *.kawasaki.jp, where kawasaki.jp is none itself.
	for _, name := range []string{suffix, below} {
		if public, _ := publicsuffix.PublicSuffix(name); public == name {
			return fmt.Errorf("names below %s belong to different owners: spell the host", suffix)
		}
	}
	return nil
}

// String returns the shortest text from which ParseEntry reads the entry.
// Private is not in it.
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

// covers reports whether the entry has a canonical host.
func (e Entry) covers(host string) bool {
	if !e.Wildcard {
		return e.Host == host
	}
	return strings.HasSuffix(host, "."+e.Host) && !Special(host)
}

// A Policy is what one connection may reach. The zero Policy allows nothing.
// Safe for concurrent use once made.
type Policy struct {
	// Invariant: each is as ParseEntry makes it, and no wildcard is Private.
	entries []Entry
}

// NewPolicy allows what any of the entries allows. An entry that ParseEntry
// could not have made allows nothing.
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

// Match returns the entry that allows scheme://host:port, of several one that
// is Private. When none does, step says what is missing: "host" when no entry
// has the host, "scheme" when one has it with another scheme only, "port" when
// host and scheme are there with other ports only. The host is canonical;
// no entry has one that is not.
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
