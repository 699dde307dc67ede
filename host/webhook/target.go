package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Resolver resolves host names, like *net.Resolver.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// maxAddresses bounds the addresses of one name.
const maxAddresses = 32

// A gate decides where deliveries may go.
type gate struct {
	resolver  Resolver
	forbidden func(netip.Addr) string
	loopback  bool         // allow http and https to this machine's loopback
	alive     func() error // Options.Alive
}

// accept checks the URL of a new webhook and resolves its name once. Later resolutions may differ and are checked
// separately.
func (g *gate) accept(ctx context.Context, raw string) error {
	u, err := g.parse(raw)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	if _, err := g.resolve(ctx, u.Hostname(), u.Scheme == "http"); err != nil {
		return refuse("url", "%v", err)
	}
	return nil
}

// parse checks the form of a URL.
func (g *gate) parse(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, refuse("url", "is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Hostname() == "" {
		return nil, refuse("url", "is not a URL of a server")
	}
	ascii := !strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > 0x7e || r <= ' ' })
	switch {
	case !ascii:
		return nil, refuse("url", "must write the name of its server in ASCII (xn--…)")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse("url", "must begin with https://")
	case u.Scheme == "http" && !g.loopback:
		return nil, refuse("url", "must begin with https://, so that what happens in runs is not readable on its way")
	case u.User != nil:
		return nil, refuse("url", "must not hold a user name or password: deliveries are signed")
	case u.Fragment != "":
		return nil, refuse("url", "must not have a fragment")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, refuse("url", "must have a port from 1 to 65535")
		}
	}
	return u, nil
}

// errNowhere is the error for every name without an address to which deliveries may go. It does not say whether the
// name has no address or a forbidden one, because that would reveal which names and addresses exist in the host's
// network.
var errNowhere = errors.New("names no server that deliveries may go to: it is not found, or not at a public address")

// resolve resolves a host name and checks every address. If one is forbidden, it returns errNowhere. plain means that
// the address is for http.
func (g *gate) resolve(ctx context.Context, host string, plain bool) ([]netip.Addr, error) {
	addresses, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if g.check(a, plain) != "" {
			return nil, errNowhere
		}
	}
	return addresses, nil
}

func (g *gate) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if strings.Contains(host, ".") && !strings.HasSuffix(host, ".") {
		host += "." // otherwise search domains could lead to other servers
	}
	list, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(list) == 0 || len(list) > maxAddresses {
		return nil, errNowhere
	}
	return list, nil
}

// check returns why an address may not be dialled, or "".
func (g *gate) check(a netip.Addr, plain bool) string {
	zone := a.Zone() != ""
	a = a.Unmap()
	switch {
	case !a.IsValid() || zone:
		return "not an address of a server"
	case a.IsLoopback() && g.loopback:
		return ""
	case plain:
		return "http is for this machine only"
	}
	return g.forbidden(a)
}

// dialer returns a function that only connects to checked addresses. It checks the address that is given to the kernel,
// regardless of how the name resolves in the meantime.
func (g *gate) dialer(plain bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTime) // the transport detaches ctx from the request's
		defer cancel()
		host, portText, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(portText, 10, 16)
		if err != nil {
			return nil, err
		}
		addresses, err := g.resolve(ctx, host, plain)
		if err != nil {
			return nil, fmt.Errorf("url %w", err)
		}
		d := net.Dialer{Timeout: attemptTime / time.Duration(min(len(addresses), 3)),
			ControlContext: func(_ context.Context, _, literal string, _ syscall.RawConn) error {
				to, err := netip.ParseAddrPort(literal)
				if err != nil {
					return err
				}
				if g.check(to.Addr(), plain) != "" {
					return errNowhere
				}
				return nil
			}}
		for _, a := range addresses {
			var conn net.Conn
			if conn, err = d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, uint16(port)).String()); err == nil {
				return g.guard(conn), nil
			}
		}
		return nil, err
	}
}

// A guarded connection sends nothing while another host may be delivering instead of this one. A process that was
// suspended before it sends notices here.
type guarded struct {
	net.Conn
	alive func() error
}

func (g *gate) guard(c net.Conn) net.Conn {
	if g.alive == nil {
		return c
	}
	return guarded{c, g.alive}
}

func (c guarded) Write(b []byte) (int, error) {
	if err := c.alive(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
