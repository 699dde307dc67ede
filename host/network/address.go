package network

import (
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// A Table says which addresses a connector may reach without an entry for
// exactly that address. The zero Table is the strict one, less the
// machine's own addresses. Safe for concurrent use if Own is.
type Table struct {
	// NAT64 has addresses of 64:ff9b::/96 judged by the IPv4 address in them,
	// for networks that have no IPv4.
	NAT64 bool
	// Own returns the addresses of this machine's interfaces; nil for
	// none. An invalid address among them says that they could not be read:
	// then no address is public.
	Own func() []netip.Addr
}

// notPublic4 are the ranges of IPv4 that are not public.
var notPublic4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
	"172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// Of IPv6 only public6 is allowed, less notPublic6.
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

// Public reports whether an address is public and not this machine's. An IPv4-mapped address
// is judged as the IPv4 address that a dial of it would reach. Invalid
// addresses and those with a zone are never public.
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

// foreign reports whether an address is known not to be this machine's.
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

// ownAge is how old a list of the machine's addresses may be.
const ownAge = 60 * time.Second

type ownList struct {
	addrs []netip.Addr
	at    time.Time
}

// fresh takes the older of two ages: one clock stops while the machine sleeps,
// the other may be set.
func (l *ownList) fresh(now time.Time) bool {
	wall := now.Round(0).Sub(l.at.Round(0))
	return wall >= 0 && wall < ownAge && now.Sub(l.at) < ownAge
}

// OwnAddresses returns the Own of a Table: the addresses of the interfaces of
// this machine, read anew when the list is 60 s old. While they cannot be read,
// the list is one invalid address, and every call tries again. Callers must not
// change the list. Safe for concurrent use.
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
