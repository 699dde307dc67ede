package egress_test

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/egress"
)

// An edge is a range of the address table and what lies beside it. Whether a
// neighbour is public is written down, not computed; "" means there is none.
type edge struct {
	prefix       string
	first, last  string
	before       string
	beforePublic bool
	after        string
	afterPublic  bool
}

// refused4 are addresses of IPv4 that are not public.
var refused4 = []edge{
	{"0.0.0.0/8", "0.0.0.0", "0.255.255.255", "", false, "1.0.0.0", true},
	{"10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", true, "11.0.0.0", true},
	{"100.64.0.0/10", "100.64.0.0", "100.127.255.255", "100.63.255.255", true, "100.128.0.0", true},
	{"127.0.0.0/8", "127.0.0.0", "127.255.255.255", "126.255.255.255", true, "128.0.0.0", true},
	{"169.254.0.0/16", "169.254.0.0", "169.254.255.255", "169.253.255.255", true, "169.255.0.0", true},
	{"172.16.0.0/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", true, "172.32.0.0", true},
	{"192.0.0.0/24", "192.0.0.0", "192.0.0.255", "191.255.255.255", true, "192.0.1.0", true},
	{"192.0.2.0/24", "192.0.2.0", "192.0.2.255", "192.0.1.255", true, "192.0.3.0", true},
	{"192.88.99.0/24", "192.88.99.0", "192.88.99.255", "192.88.98.255", true, "192.88.100.0", true},
	{"192.168.0.0/16", "192.168.0.0", "192.168.255.255", "192.167.255.255", true, "192.169.0.0", true},
	{"198.18.0.0/15", "198.18.0.0", "198.19.255.255", "198.17.255.255", true, "198.20.0.0", true},
	{"198.51.100.0/24", "198.51.100.0", "198.51.100.255", "198.51.99.255", true, "198.51.101.0", true},
	{"203.0.113.0/24", "203.0.113.0", "203.0.113.255", "203.0.112.255", true, "203.0.114.0", true},
	{"224.0.0.0/4", "224.0.0.0", "239.255.255.255", "223.255.255.255", true, "240.0.0.0", false},
	{"240.0.0.0/4", "240.0.0.0", "255.255.255.255", "239.255.255.255", false, "", false},
}

const ones = ":ffff:ffff:ffff:ffff"

// refused6 is what is cut out of 2000::/3, then what is outside of it.
var refused6 = []edge{
	{"2001::/23", "2001::", "2001:1ff:ffff:ffff" + ones, "2000:ffff:ffff:ffff" + ones, true, "2001:200::", true},
	{"2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff" + ones, "2001:db7:ffff:ffff" + ones, true, "2001:db9::", true},
	{"2002::/16", "2002::", "2002:ffff:ffff:ffff" + ones, "2001:ffff:ffff:ffff" + ones, true, "2003::", true},
	{"3fff::/20", "3fff::", "3fff:fff:ffff:ffff" + ones, "3ffe:ffff:ffff:ffff" + ones, true, "3fff:1000::", true},

	{"::/96", "::", "::ffff:ffff", "", false, "::1:0:0", false},
	{"64:ff9b::/96", "64:ff9b::", "64:ff9b::ffff:ffff", "64:ff9a:ffff:ffff" + ones, false, "64:ff9b::1:0:0", false},
	{"64:ff9b:1::/48", "64:ff9b:1::", "64:ff9b:1:ffff" + ones, "64:ff9b:0:ffff" + ones, false, "64:ff9b:2::", false},
	{"100::/64", "100::", "100::ffff:ffff:ffff:ffff", "ff:ffff:ffff:ffff" + ones, false, "100:0:0:1::", false},
	{"5f00::/16", "5f00::", "5f00:ffff:ffff:ffff" + ones, "5eff:ffff:ffff:ffff" + ones, false, "5f01::", false},
	{"fc00::/7", "fc00::", "fdff:ffff:ffff:ffff" + ones, "fbff:ffff:ffff:ffff" + ones, false, "fe00::", false},
	{"fe80::/10", "fe80::", "febf:ffff:ffff:ffff" + ones, "fe7f:ffff:ffff:ffff" + ones, false, "fec0::", false},
	{"fec0::/10", "fec0::", "feff:ffff:ffff:ffff" + ones, "febf:ffff:ffff:ffff" + ones, false, "ff00::", false},
	{"ff00::/8", "ff00::", "ffff:ffff:ffff:ffff" + ones, "feff:ffff:ffff:ffff" + ones, false, "", false},
	{"::/3", "::", "1fff:ffff:ffff:ffff" + ones, "", false, "2000::", true},
	{"4000::/2", "4000::", "7fff:ffff:ffff:ffff" + ones, "3fff:ffff:ffff:ffff" + ones, true, "8000::", false},
}

// check compares one verdict; "" is no address.
func check(t *testing.T, table *egress.Table, address string, want bool) {
	t.Helper()
	if address == "" {
		return
	}
	if got := table.Public(netip.MustParseAddr(address)); got != want {
		t.Errorf("Public(%s) = %v, want %v", address, got, want)
	}
}

func (e edge) check(t *testing.T, table *egress.Table, form func(string) string) {
	t.Helper()
	check(t, table, form(e.first), false)
	check(t, table, form(e.last), false)
	check(t, table, form(e.before), e.beforePublic)
	check(t, table, form(e.after), e.afterPublic)
}

func as(prefix string) func(string) string {
	return func(s string) string {
		if s == "" {
			return ""
		}
		return prefix + s
	}
}

func TestEdges(t *testing.T) {
	for _, e := range slices.Concat(refused4, refused6) {
		for _, table := range []*egress.Table{{}, {NAT64: true}} {
			if e.prefix == "64:ff9b::/96" && table.NAT64 {
				continue // TestNAT64
			}
			e.check(t, table, as(""))
		}
	}
}

// TestEdgesAreEdges fails when the tables above do not say what they mean.
func TestEdgesAreEdges(t *testing.T) {
	for _, e := range slices.Concat(refused4, refused6) {
		p := netip.MustParsePrefix(e.prefix)
		first, last := netip.MustParseAddr(e.first), netip.MustParseAddr(e.last)
		if !p.Contains(first) || p.Contains(first.Prev()) || !p.Contains(last) || p.Contains(last.Next()) {
			t.Errorf("%s does not go from %s to %s", e.prefix, first, last)
		}
		if before, _ := netip.ParseAddr(e.before); before != first.Prev() {
			t.Errorf("%s: before is %v, not %s", e.prefix, first.Prev(), e.before)
		}
		if after, _ := netip.ParseAddr(e.after); after != last.Next() {
			t.Errorf("%s: after is %v, not %s", e.prefix, last.Next(), e.after)
		}
	}
}

func TestMapped(t *testing.T) {
	for _, e := range refused4 {
		e.check(t, &egress.Table{}, as("::ffff:"))
	}
}

func TestNAT64(t *testing.T) {
	for _, e := range refused4 {
		e.check(t, &egress.Table{NAT64: true}, as("64:ff9b::"))
		for _, a := range []string{e.first, e.last, e.before, e.after} {
			check(t, &egress.Table{}, as("64:ff9b::")(a), false)
			check(t, &egress.Table{NAT64: true}, as("64:ff9b:1::")(a), false)
			check(t, &egress.Table{NAT64: true}, as("::")(a), false)
		}
	}
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "2606:4700:4700::1111": true, "2a00:1450:4001:830::200e": true,
		"::ffff:8.8.8.8": true, "::ffff:7f00:1": false, "::ffff:a9fe:a9fe": false,
		"64:ff9b::7f00:1": false, "64:ff9b::808:808": false, "2002:7f00:1::": false, "2002:808:808::1": false,
		"::7f00:1": false, "::8.8.8.8": false, "::ffff:0:127.0.0.1": false, "::": false, "::1": false,
		"2001:0:4136:e378:8000:63bf:3fff:fdd2": false, "100.64.0.1": false, "198.18.0.1": false, "240.0.0.1": false,
		"255.255.255.255": false, "0.0.0.0": false, "127.0.0.53": false, "169.254.169.254": false, "100.100.100.200": false,
		"fd00:ec2::254": false, "fe80::1": false, "ff02::1": false, "fe80::1%eth0": false,
		"2606:4700:4700::1111%eth0": false, "::ffff:8.8.8.8%eth0": false,
	} {
		check(t, &egress.Table{}, address, want)
	}
	nat64 := &egress.Table{NAT64: true}
	check(t, nat64, "64:ff9b::7f00:1", false)
	check(t, nat64, "64:ff9b::a9fe:a9fe", false)
	check(t, nat64, "64:ff9b::808:808", true)
	check(t, nat64, "64:ff9b::808:808%eth0", false)
	if (&egress.Table{}).Public(netip.Addr{}) || nat64.Public(netip.Addr{}) {
		t.Error("the invalid address is public")
	}
}

func TestOwn(t *testing.T) {
	own := []netip.Addr{
		netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("::ffff:9.9.9.9"),
		netip.MustParseAddr("2606:4700::1%eth0"), netip.MustParseAddr("64:ff9b::101:101"),
	}
	table := &egress.Table{NAT64: true, Own: func() []netip.Addr { return own }}
	for address, want := range map[string]bool{
		"8.8.8.8": false, "::ffff:8.8.8.8": false, "64:ff9b::808:808": false, "8.8.8.9": true,
		"9.9.9.9": false, "::ffff:9.9.9.9": false, "64:ff9b::909:909": false, "64:ff9b::909:90a": true,
		"2606:4700::1": false, "2606:4700::2": true, "64:ff9b::101:101": false, "1.1.1.1": true,
		"127.0.0.1": false,
	} {
		check(t, table, address, want)
	}
	own = append(own, netip.Addr{})
	for _, address := range []string{"8.8.8.9", "2606:4700::2", "64:ff9b::909:90a"} {
		check(t, table, address, false)
	}
	own = nil
	check(t, table, "8.8.8.8", true)
}

func TestOwnAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := egress.OwnAddresses()
		first := list()
		ifaces, err := net.InterfaceAddrs()
		if err != nil || len(ifaces) == 0 {
			t.Skip("this machine has no interfaces", err)
		}
		if len(first) != len(ifaces) || !slices.ContainsFunc(first, netip.Addr.IsLoopback) {
			t.Errorf("OwnAddresses says %v, the system %v", first, ifaces)
		}
		same := func() bool { return &list()[0] == &first[0] }
		time.Sleep(60*time.Second - time.Nanosecond)
		if !same() {
			t.Error("the list was read anew before 60 s")
		}
		time.Sleep(time.Nanosecond)
		if same() {
			t.Error("the list was not read anew after 60 s")
		}
	})
}

func TestOwnAddressesHammer(t *testing.T) {
	table := &egress.Table{Own: egress.OwnAddresses()}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				check(t, table, "127.0.0.1", false)
			}
		})
	}
	wg.Wait()
}
