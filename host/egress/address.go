package egress

import (
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// A Table decides which addresses a connector may reach without an approval of exactly that
// address. The zero Table permits public addresses, without excluding the machine's own. It
// is safe for concurrent use if Own is.
type Table struct {
	// NAT64 judges addresses of 64:ff9b::/96 by the IPv4 address in them, for networks
	// without IPv4.
	NAT64 bool
	// Own returns the addresses of this machine's interfaces; nil for none. An invalid
	// address in the list says that they could not be read; then no address is public.
	Own func() []netip.Addr
}

// notPublic4 are the ranges of IPv4 that are not public.
var notPublic4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
	"172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// Only public6 without notPublic6 is permitted of IPv6.
var (
	public6    = netip.MustParsePrefix("2000::/3")
	notPublic6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Public reports whether an address is public and not this machine's. An IPv4-mapped
// address is judged as its IPv4 address, which a dial would reach. Invalid addresses and
// those with a zone are never public.
func (t *Table) Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if !t.foreign(a) {
		return false
	}
	if t.NAT64 && nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
		return !within(notPublic4, a) && t.foreign(a)
	}
	if a.Is4() {
		return !within(notPublic4, a)
	}
	return public6.Contains(a) && !within(notPublic6, a)
}

// foreign reports whether an address is known to belong to another machine.
func (t *Table) foreign(a netip.Addr) bool {
	if t.Own == nil {
		return true
	}
	return !slices.ContainsFunc(t.Own(), func(own netip.Addr) bool {
		return !own.IsValid() || own.Unmap().WithZone("") == a
	})
}

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ownAddressTTL is how long a list of the machine's addresses is used.
const ownAddressTTL = 60 * time.Second

type ownList struct {
	addrs []netip.Addr
	at    time.Time
}

// fresh considers both clocks: the monotonic one stops while the machine sleeps, and the
// wall clock may be set.
func (l *ownList) fresh(now time.Time) bool {
	wall := now.Round(0).Sub(l.at.Round(0))
	return wall >= 0 && wall < ownAddressTTL && now.Sub(l.at) < ownAddressTTL
}

// OwnAddresses returns a function for Table.Own: it returns the addresses of this machine's
// interfaces, read again after 60 s. If they cannot be read, the list is one invalid
// address, and every call tries again. Callers must not change the list. It is safe for
// concurrent use.
func OwnAddresses() func() []netip.Addr {
	var last atomic.Pointer[ownList]
	return func() []netip.Addr {
		now := time.Now()
		if l := last.Load(); l != nil && l.fresh(now) {
			return l.addrs
		}
		addrs, err := interfaceAddresses()
		if err != nil {
			return []netip.Addr{{}}
		}
		last.Store(&ownList{addrs, now})
		return addrs
	}
}

func interfaceAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	addrs := make([]netip.Addr, 0, len(list))
	for _, i := range list {
		// What is not a network's address is left invalid, and so refuses.
		var a netip.Addr
		if n, ok := i.(*net.IPNet); ok {
			a, _ = netip.AddrFromSlice(n.IP)
		}
		addrs = append(addrs, a.Unmap())
	}
	return addrs, nil
}
