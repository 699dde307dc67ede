package chromium_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// worldEnv marks a test binary that runs in a network of its own.
const worldEnv = "EGRESS_TEST_WORLD"

// lan is this machine's address in that network, beside loopback; whatever else is
// sent goes to nobody, by way of lan.
var lan = netip.MustParseAddr("10.77.0.1")

// inWorld runs a test anew in a network of its own, where every packet is seen, and
// reports whether this is it.
func inWorld(t *testing.T) bool {
	t.Helper()
	if os.Getenv(worldEnv) != "" {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=8m")
	cmd.Env = append(os.Environ(), worldEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWNET | unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW},
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// furnish makes the network: loopback, lan, and a way to everywhere that ends in
// a file.
func furnish(t *testing.T) {
	t.Helper()
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tun.Close() })
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	dev := request(t, "lan0")
	dev.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	err = unix.IoctlIfreq(int(tun.Fd()), unix.TUNSETIFF, dev)
	for _, name := range []string{"lo", "lan0"} {
		if name == "lan0" {
			address := request(t, name)
			err = errors.Join(err, address.SetInet4Addr(lan.AsSlice()), unix.IoctlIfreq(s, unix.SIOCSIFADDR, address))
		}
		up := request(t, name)
		err = errors.Join(err, unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, up))
		up.SetUint16(up.Uint16() | unix.IFF_UP)
		err = errors.Join(err, unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, up))
	}
	if err = errors.Join(err, route(s, "lan0")); err != nil {
		t.Fatal(err)
	}
}

func request(t *testing.T, name string) *unix.Ifreq {
	t.Helper()
	r, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// route sends everything else to a device: struct rtentry.
func route(socket int, device string) error {
	name := append([]byte(device), 0)
	r := struct {
		_             uintptr
		dst, gw, mask unix.RawSockaddrInet4
		flags, _      uint16
		_             [2]uintptr
		_             int16
		dev           *byte
		_             [3]uintptr
	}{flags: unix.RTF_UP, dev: &name[0]}
	r.dst.Family, r.gw.Family, r.mask.Family = unix.AF_INET, unix.AF_INET, unix.AF_INET
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r))) // #nosec G103 -- no other way
	if errno != 0 {
		return os.NewSyscallError("SIOCADDRT", errno)
	}
	return nil
}

// A packetTap sees what is begun on any interface of the network.
type packetTap struct {
	fd int

	site   string // an address to which TCP is nobody's escape
	marked chan struct{}

	mu    sync.Mutex // guards what follows
	proxy netip.AddrPort
	begun map[string]int
}

// pass names the proxy, to which TCP is nobody's escape either.
func (w *packetTap) pass(proxy string) {
	at, _ := netip.ParseAddrPort(strings.TrimPrefix(proxy, "http://"))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proxy = at
}

func (w *packetTap) passes(to netip.AddrPort) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return to == w.proxy || to.Addr().String() == w.site
}

// marker is where a datagram goes that says that all before it was read.
var marker = netip.MustParseAddrPort("127.9.9.9:9")

// listen opens the tap.
func listen(t *testing.T, site string) *packetTap {
	t.Helper()
	all := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all)
	if err != nil {
		t.Fatal(err)
	}
	w := &packetTap{fd: fd, begun: map[string]int{}, site: site, marked: make(chan struct{})}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { w.read(stop) })
	t.Cleanup(func() {
		close(stop)
		reading.Wait()
		_ = unix.Close(fd)
	})
	return w
}

func (w *packetTap) read(stop chan struct{}) {
	packet := make([]byte, 1<<16)
	for {
		select {
		case <-stop:
			return
		default:
		}
		n, from, err := unix.Recvfrom(w.fd, packet, 0)
		if err != nil {
			continue // nothing for a while
		}
		// What comes back on loopback does not count.
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
			w.note(packet[:n])
		}
	}
}

// note counts beginnings of TCP connections, and datagrams. What the kernel sends
// by itself is neither.
func (w *packetTap) note(p []byte) {
	var proto byte
	var to netip.Addr
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		proto, to = p[9], netip.AddrFrom4([4]byte(p[16:20]))
		p = p[int(p[0]&15)*4:]
	case len(p) >= 40 && p[0]>>4 == 6:
		proto, to = p[6], netip.AddrFrom16([16]byte(p[24:40]))
		p = p[40:]
	default:
		return
	}
	if len(p) < 14 && proto == unix.IPPROTO_TCP || len(p) < 8 {
		return
	}
	at := netip.AddrPortFrom(to, binary.BigEndian.Uint16(p[2:4]))
	name := ""
	switch proto {
	case unix.IPPROTO_TCP:
		const syn, ack = 2, 16
		if p[13]&(syn|ack) != syn || w.passes(at) {
			return
		}
		name = "tcp " + at.String()
	case unix.IPPROTO_UDP:
		name = "udp " + at.String()
		if at == marker {
			w.marked <- struct{}{}
			return
		}
		if at.Port() == 53 {
			name = "dns " + question(p[8:])
		}
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6, unix.IPPROTO_IGMP:
		return
	default:
		name = fmt.Sprintf("protocol %d to %s", proto, to)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun[name]++
}

// question is the name that a look-up asks for.
func question(p []byte) (name string) {
	for i := 12; i < len(p) && p[i] != 0 && i+1+int(p[i]) <= len(p); i += 1 + int(p[i]) {
		name += string(p[i+1:i+1+int(p[i])]) + "."
	}
	return name
}

// seen are the names of what was begun, and how often, since the last call.
func (w *packetTap) seen(t *testing.T) map[string]int {
	t.Helper()
	conn, err := net.Dial("udp", marker.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("here")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.marked:
	case <-time.After(2 * time.Minute):
		t.Fatal("the tap sees nothing")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.begun
	w.begun = map[string]int{}
	return seen
}

func listenOn(t *testing.T, address string, port int) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
