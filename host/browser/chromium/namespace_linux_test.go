package chromium_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// hasNamespaces reports whether the machine offers them to this process. If not,
// that is what Open has to say.
func hasNamespaces(t *testing.T) bool {
	t.Helper()
	if chromium.EgressMode() == chromium.ModeNamespace {
		return true
	}
	if _, err := chromium.OpenGate(chromium.GateOptions{Mode: chromium.ModeNamespace}); !errors.Is(err, chromium.ErrMode) {
		t.Errorf("namespaces are not available, and Open says %v", err)
	}
	return false
}

// namespaced opens a gate in ModeNamespace if the machine offers it.
func namespaced(t *testing.T) (*gateFixture, bool) {
	t.Helper()
	if !hasNamespaces(t) {
		return nil, false
	}
	return gate(t, chromium.GateOptions{Mode: chromium.ModeNamespace}), true
}

// A prisoner is a process that tries things from where it is.
type prisoner struct {
	t   *testing.T
	pid int
	in  io.Writer
	out *bufio.Reader
}

func imprison(t *testing.T, g *chromium.Gate) *prisoner {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, insideArg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, g.Wrap(cmd), cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if !cmd.SysProcAttr.Setpgid {
		t.Error("Wrap drops what was there")
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &prisoner{t, cmd.Process.Pid, in, bufio.NewReader(out)}
}

func (p *prisoner) tries(network, address, text string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, network, address, text); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := strconv.Unquote(strings.TrimSpace(line))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// Inside there is the gate and nothing else, and before Attach not even that.
func TestNamespace(t *testing.T) {
	g, ok := namespaced(t)
	if !ok {
		return
	}
	port := serveSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	outside := listenCanary(t, "tcp", "127.0.0.1:0")
	abstract, err := net.Listen("unix", "@egress-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	g.Bind(chromium.GateBinding{Policy: policyOf(entry(t, "http://127.0.0.1:"+port, true)), Denied: g.note})
	if g.Mode() != chromium.ModeNamespace || g.ProxyURL() != "http://127.0.0.1:3128" {
		t.Errorf("%s at %s", g.Mode(), g.ProxyURL())
	}
	p := imprison(t, g.Gate)
	if got := p.tries("tcp", "127.0.0.1:3128", "x"); got != "not connected" {
		t.Errorf("before Attach: %s", got)
	}
	if err := g.Attach(p.pid); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ network, address, text, want string }{
		{"tcp", "127.0.0.1:3128", "GET http://127.0.0.1:" + port + "/ HTTP/1.1|Host: x||", "answered HTTP/1.1 200 OK"},
		{"tcp", "127.0.0.1:3128", "GET http://evil.example/ HTTP/1.1|Host: x||", "answered HTTP/1.1 403 Forbidden"},
		{"tcp", "127.0.0.1:" + port, "GET / HTTP/1.1|Host: x||", "not connected"},
		{"tcp", "127.0.0.1:" + strconv.Itoa(outside.port), "x", "not connected"},
		{"tcp", "192.0.2.1:80", "x", "not connected"},
		{"tcp", "[2001:db8::1]:80", "x", "not connected"},
		{"udp", "192.0.2.1:53", "x", "not connected"},
		{"udp", "224.0.0.251:5353", "x", "not connected"},
		{"unix", abstract.Addr().String(), "x", "not connected"},
	} {
		if got := p.tries(c.network, c.address, c.text); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.network, c.address, got, c.want)
		}
	}
	if outside.hits.Load() != 0 {
		t.Error("the machine's own loopback was reached")
	}
	second := imprison(t, g.Gate)
	if err := g.Attach(second.pid); err != nil {
		t.Fatal(err)
	}
	if got := second.tries("tcp", "127.0.0.1:3128",
		"GET http://evil.example/ HTTP/1.1|Host: x||"); got != "answered HTTP/1.1 403 Forbidden" {
		t.Errorf("the second process: %s", got)
	}
	if got := p.tries("tcp", "127.0.0.1:3128", "GET http://evil.example/ HTTP/1.1|Host: x||"); got != "not connected" {
		t.Errorf("the first process, replaced: %s", got)
	}
	select {
	case <-g.Dead():
		t.Errorf("replaced is not dead: %v", g.Err())
	default:
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if got := second.tries("tcp", "127.0.0.1:3128", "x"); got != "not connected" {
		t.Errorf("after Close: %s", got)
	}
	if err := g.Attach(second.pid); !errors.Is(err, chromium.ErrGateClosed) {
		t.Errorf("Attach after Close: %v", err)
	}
}

// A process that would go around the gate is not taken for one that cannot.
func TestAttachRefuses(t *testing.T) {
	g, ok := namespaced(t)
	if !ok {
		return
	}
	flags := gate(t, chromium.GateOptions{})
	free := imprison(t, flags.Gate)
	if err := g.Attach(free.pid); !errors.Is(err, chromium.ErrNamespace) {
		t.Errorf("a process without a namespace: %v", err)
	}
	if err := g.Attach(os.Getpid()); !errors.Is(err, chromium.ErrNamespace) {
		t.Errorf("the host itself: %v", err)
	}
	if err := flags.Attach(free.pid); err != nil {
		t.Errorf("with flags: %v", err)
	}
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if err := g.Attach(gone.Process.Pid); err == nil {
		t.Error("a process that is gone")
	}
}

// No thread of the host stays in a namespace, and no descriptor open.
func TestNamespaceLeavesNothing(t *testing.T) {
	g, ok := namespaced(t)
	if !ok {
		return
	}
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	p := imprison(t, g.Gate)
	before := count()
	for range 50 {
		if err := g.Attach(p.pid); err != nil && !errors.Is(err, syscall.EADDRINUSE) { // it listens there already
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	strayed := func() (list []string) {
		spaces, _ := filepath.Glob("/proc/self/task/*/ns/net")
		for _, s := range spaces {
			if at, err := os.Readlink(s); err == nil && at != ours {
				list = append(list, s)
			}
		}
		return list
	}
	for end := time.Now().Add(2 * time.Minute); len(strayed()) > 0; { // a thread takes a moment to end
		if time.Now().After(end) {
			t.Fatalf("threads in other namespaces: %q", strayed())
		}
	}
}
