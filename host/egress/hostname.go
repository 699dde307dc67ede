package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// ErrHost is wrapped by the errors of CanonicalHost.
var ErrHost = errors.New("not a host")

const (
	maxHostText  = 1024 // of the input, in bytes
	maxHostName  = 253
	maxHostLabel = 63
)

// idnaProfile is UTS 46, non-transitional, strict.
var idnaProfile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(true),
	idna.ValidateLabels(true), idna.BidiRule(), idna.VerifyDNSLength(true))

// CanonicalHost returns the canonical spelling of a host, which policies compare, dials use
// and certificates are checked for: a name in lower-case ASCII without trailing dot, IPv4
// as a dotted quad, IPv6 as netip spells it, without brackets. The argument may have
// brackets around IPv6.
//
// It refuses what programs interpret differently: zone ids, numbers other than a plain
// dotted quad, and names that become an address by mapping. Errors wrap ErrHost.
//
// Invariant: the canonical host of a canonical host is itself.
func CanonicalHost(host string) (string, error) {
	canonical, err := canonicalHost(host)
	if err != nil {
		return "", fmt.Errorf("%w: %.80q: %w", ErrHost, host, err)
	}
	return canonical, nil
}

func canonicalHost(host string) (string, error) {
	switch {
	case host == "":
		return "", errors.New("it is empty")
	case len(host) > maxHostText:
		return "", fmt.Errorf("it is longer than %d bytes", maxHostText)
	case !utf8.ValidString(host):
		return "", errors.New("it is not UTF-8")
	case strings.Contains(host, "%"):
		return "", errors.New("zone ids and percent signs are not allowed")
	case strings.ContainsAny(host, ":[]"):
		return canonicalIPv6(host)
	}
	host = strings.TrimSuffix(host, ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), nil
	}
	return canonicalName(host)
}

func canonicalIPv6(host string) (string, error) {
	text := host
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", errors.New("a bracket is not closed")
		}
	}
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is6() {
		return "", errors.New("it is not an IPv6 address")
	}
	return a.String(), nil
}

func canonicalName(host string) (string, error) {
	name, err := idnaProfile.ToASCII(host)
	if err != nil {
		return "", err
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	// A name must not change if it is mapped again.
	if again, err := idnaProfile.ToASCII(name); err != nil || again != name {
		return "", errors.New("it has no stable spelling")
	}
	return name, nil
}

// checkName checks the result of the mapping, without relying on it.
func checkName(name string) error {
	if len(name) > maxHostName {
		return fmt.Errorf("it is longer than %d bytes", maxHostName)
	}
	last := ""
	for last = range strings.SplitSeq(name, ".") {
		switch {
		case last == "":
			return errors.New("a label is empty")
		case len(last) > maxHostLabel:
			return fmt.Errorf("a label is longer than %d bytes", maxHostLabel)
		case last[0] == '-' || last[len(last)-1] == '-':
			return errors.New("a label begins or ends with a hyphen")
		case strings.Trim(last, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			return errors.New("only letters, digits and hyphens are allowed")
		}
	}
	if strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
		return errors.New("a number is allowed only as a plain dotted quad such as 192.0.2.1")
	}
	return nil
}

// specialDomains are the names that mean something else on each network, including all
// names below them.
var specialDomains = []string{
	"localhost", "local", "internal", "home.arpa", "onion",
	// Metadata services of clouds that the names above do not cover. Those of Google,
	// Amazon and Azure are below internal or are single labels.
	"metadata.goog", "metadata.tencentyun.com", "metadata.platformequinix.com",
	"metadata.packet.net", "metadata.cloud.ibm.com",
}

// Special reports whether a host matches only an entry that spells it exactly, never a
// wildcard: addresses, single labels, names that differ between networks, and cloud
// metadata. The host is canonical.
func Special(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc(specialDomains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
}
