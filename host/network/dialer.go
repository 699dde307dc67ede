package network

import (
	"cmp"
	"context"
	"net"
	"strconv"
)

// A Dialer connects for those who speak to servers themselves, as the browser's
// proxy does: name, policy, look-up and addresses, by the code that serves guests.
// What goes through its connections is theirs to check and to count. Safe for
// concurrent use.
type Dialer struct {
	d   *dialer
	end context.CancelFunc
}

// NewDialer returns a Dialer without connections. Of the options it takes
// Policy, Table, Resolver and, of Limits, Dial and Connections; what is missing
// is as for NewClient.
func NewDialer(o Options) *Dialer {
	o.Policy = cmp.Or(o.Policy, NewPolicy())
	o = o.reaching()
	life, end := context.WithCancel(context.Background())
	return &Dialer{newDialer(o, nil, life), end}
}

// Dial connects to a host that the policy allows by one of the schemes. A name is
// looked up only if it does; one forbidden address among its addresses
// refuses it, and the address about to be connected has the last word. The
// connection has a CloseWrite. The error is an *Error, with the step of the first
// scheme if the policy denies all of them; it never names an address.
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
	conn, err := d.d.plain(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return nil, explain(err)
	}
	return conn, nil
}

// Close ends the connections, and those that are being made.
func (d *Dialer) Close() {
	d.end()
	d.d.close()
}
