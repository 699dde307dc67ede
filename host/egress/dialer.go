package egress

import (
	"cmp"
	"context"
	"net"
	"strconv"
)

// A Dialer connects on behalf of components that speak to servers themselves, such as the
// browser's proxy. It checks names, policy and addresses like requests of guests; the
// caller checks and counts the traffic. It is safe for concurrent use.
type Dialer struct {
	d      *dialer
	cancel context.CancelFunc
}

// NewDialer returns a Dialer. It uses Policy, Table, Resolver and, of Limits, Dial and
// Connections; defaults are those of NewClient.
func NewDialer(o Options) *Dialer {
	o.Policy = cmp.Or(o.Policy, NewPolicy())
	o = o.withDialDefaults()
	life, end := context.WithCancel(context.Background())
	return &Dialer{newDialer(o, nil, life), end}
}

// Dial connects to a host that the policy permits with one of the schemes. A name is
// resolved only then, and refused if any of its addresses is forbidden; the address to be
// connected is checked last. The connection has a CloseWrite method. The error is an
// *Error, with the step of the first scheme if the policy denies all, and never contains an
// address.
func (d *Dialer) Dial(ctx context.Context, host string, port uint16, schemes ...string) (net.Conn, error) {
	host, err := CanonicalHost(host)
	if err != nil {
		return nil, denyf("host", "this is not the name of a host")
	}
	step := "scheme"
	for i := len(schemes) - 1; i >= 0 && step != ""; i-- {
		_, step = d.d.policy.Match(schemes[i], host, port)
	}
	if step != "" {
		return nil, denyf(step, "the address is not in the connection's network policy")
	}
	conn, err := d.d.dialPlain(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return nil, exchangeError(err)
	}
	return conn, nil
}

// Close ends all connections and dials.
func (d *Dialer) Close() {
	d.cancel()
	d.d.close()
}
