package network

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/sluicehost/sluice/abi"
)

// A Resolver looks names up; *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A dialer is steps 4 and 5 of section 6.2. Whoever dials has passed step 3.
type dialer struct {
	policy   *Policy
	table    *Table
	resolver Resolver
	limits   Limits
}

// dial connects to HOST:PORT, HOST canonical. It looks a name up once, refuses
// it if one of its addresses is forbidden, and connects to one of them as a
// literal. The kernel's own destination has the last word.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	port := uint16(n)
	private := d.private(host, port)
	addresses, err := d.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if !private && !d.table.Public(a) {
			return nil, errAddress(host, port)
		}
	}
	nd := net.Dialer{Timeout: d.limits.Dial, ControlContext: func(_ context.Context, _, literal string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(literal)
		if err != nil || to.Port() != port || !private && !d.table.Public(to.Addr()) {
			return errAddress(host, port)
		}
		return nil
	}}
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = nd.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String()); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// private reports whether the owner approved exactly this host and port,
// wherever it leads (S64). The scheme of that entry is of no interest here: step
// 3 has looked at it.
func (d *dialer) private(host string, port uint16) bool {
	for _, scheme := range []string{"https", "http"} {
		if e, step := d.policy.Match(scheme, host, port); step == "" && e.Private {
			return true
		}
	}
	return false
}

func (d *dialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.limits.Dial)
	defer cancel()
	name := host
	if strings.Contains(host, ".") {
		name += "." // or search domains would carry it to other servers
	}
	list, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, failf(abi.EUNAVAIL, "unreachable", "host %s cannot be found", host)
	}
	if len(list) == 0 || len(list) > maxAddresses {
		return nil, failf(abi.EUNAVAIL, "unreachable", "host %s has %d addresses, want 1 to %d", host, len(list), maxAddresses)
	}
	for i, a := range list {
		list[i] = a.Unmap()
	}
	return list, nil
}

func errAddress(host string, port uint16) *Error {
	return denyf("address", "host %s is not at a public address; an address of its own network is reached only if the owner approves exactly that: --allow-host ADDRESS:%d", host, port)
}
