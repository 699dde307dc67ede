package chromium

import (
	"time"

	"github.com/sluicehost/sluice/host/network"
)

// GateLimits bound what a browser can do to the host through its gate (B241).
type GateLimits struct {
	Tunnels     int           // open at once
	Connections int           // from the browser, beside tunnels
	Idle        time.Duration // in which something passes a tunnel, or a request
	Dial        time.Duration // connecting, and then what a tunnel begins with
	Headers     time.Duration // of a request
	HeaderBytes int           // of a request, and of an answer
}

// DefaultGateLimits returns the defaults.
func DefaultGateLimits() GateLimits {
	return GateLimits{Tunnels: 256, Connections: 256, Idle: time.Minute, Dial: 10 * time.Second, Headers: 10 * time.Second, HeaderBytes: 256 << 10}
}

// reaching are the limits of who connects. Tunnels and plain connections are
// counted here, so none ever waits there.
func (l GateLimits) reaching() network.Limits {
	n := network.DefaultLimits()
	n.Dial, n.Connections = l.Dial, 2*(l.Tunnels+l.Connections)
	return n
}
