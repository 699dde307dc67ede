package egress_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/egress"
)

// A Dialer takes the steps that a Client does, for any of the schemes.
func TestDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	at := strconv.Itoa(int(port))
	n := &names{answers: map[string][]string{"own.example": {"127.0.0.1"}, "inner.example": {"127.0.0.1"},
		"mixed.example": {"93.184.216.34", "10.0.0.1"}}}
	d := egress.NewDialer(egress.Options{Resolver: n, Policy: egress.NewPolicy(
		entry(t, "http://own.example:"+at, true), entry(t, "inner.example:"+at, false), entry(t, "mixed.example", false))})
	for _, c := range []struct {
		host    string
		port    uint16
		schemes []string
		step    string
	}{
		{"other.example", port, []string{"http", "https"}, "host"},
		{"own.example", port, []string{"https"}, "scheme"},
		{"own.example", port, nil, "scheme"},
		{"own.example", 1, []string{"http"}, "port"},
		{"own.example", 1, []string{"https", "http"}, "scheme"}, // of the first
		{"inner.example", port, []string{"https"}, "address"},
		{"mixed.example", 443, []string{"https"}, "address"},
		{"127.1", port, []string{"http"}, "host"},
		{"127.0.0.1", port, []string{"http"}, "host"},
	} {
		_, err := d.Dial(t.Context(), c.host, c.port, c.schemes...)
		if e := failure(t, err); e.Step != c.step {
			t.Errorf("%s:%d by %v: %+v, want a denial of the %s", c.host, c.port, c.schemes, e, c.step)
		}
	}
	for _, asked := range n.queries() {
		if asked == "other.example" || asked == "own.example" {
			t.Errorf("%s was looked up", asked)
		}
	}
	conn, err := d.Dial(t.Context(), "OWN.example.", port, "https", "http")
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after CloseWrite the server reads %v", err)
	}
	d.Close()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("after Close a connection reads %v", err)
	}
	if _, err := d.Dial(context.Background(), "own.example", port, "http"); err == nil {
		t.Error("a Dialer that is closed connects")
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}
