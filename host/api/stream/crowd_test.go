package stream_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A crowd is many clients in a process of their own, so that what they need is
// not counted as the server's.
type crowd struct {
	cmd *exec.Cmd
	out *bufio.Reader
	in  io.WriteCloser
}

const crowdEnv = "SLUICE_STREAM_CROWD"

func TestMain(m *testing.M) {
	if v := os.Getenv(crowdEnv); v != "" {
		addr, n, _ := strings.Cut(v, " ")
		clients, err := strconv.Atoi(n)
		if err == nil {
			err = beCrowd(addr, clients)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "crowd:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beCrowd follows a run n times. It prints ready once all streams have begun,
// then, whenever all have got one more frame, when the last did. It ends with
// its input.
func beCrowd(addr string, n int) error {
	began, got := make(chan error, n), make(chan struct{}, n)
	var dialing sync.WaitGroup
	turns := make(chan struct{}, 64)
	for range n {
		turns <- struct{}{}
		dialing.Go(func() {
			defer func() { <-turns }()
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			}
			if err != nil {
				began <- err
				return
			}
			first := make(chan struct{})
			go follow(conn, first, got)
			<-first
			began <- nil
		})
	}
	for range n {
		if err := <-began; err != nil {
			return err
		}
	}
	fmt.Println("ready")
	go func() {
		for {
			for range n {
				<-got
			}
			fmt.Println(time.Now().UnixNano())
		}
	}()
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// follow reads one stream; a frame of the test is one packet.
func follow(conn net.Conn, first chan struct{}, got chan<- struct{}) {
	defer conn.Close()
	buf := make([]byte, 2048)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if first != nil && bytes.Contains(buf[:n], []byte("retry:")) {
			close(first)
			first = nil
		}
		for range bytes.Count(buf[:n], []byte("event:")) {
			got <- struct{}{}
		}
	}
}

func gather(tb testing.TB, addr string, n int) *crowd {
	tb.Helper()
	c := &crowd{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", crowdEnv, addr, n))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	tb.Cleanup(func() { c.leave() })
	if got := c.line(tb); got != "ready" {
		tb.Fatalf("crowd says %q", got)
	}
	return c
}

func (c *crowd) line(tb testing.TB) string {
	tb.Helper()
	l, err := c.out.ReadString('\n')
	if err != nil {
		tb.Fatal("crowd:", err)
	}
	return strings.TrimSpace(l)
}

// all waits for a frame to have reached every client, and says when it had.
func (c *crowd) all(tb testing.TB) time.Time {
	tb.Helper()
	n, err := strconv.ParseInt(c.line(tb), 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return time.Unix(0, n)
}

// leave closes all connections at once.
func (c *crowd) leave() {
	c.in.Close()
	c.cmd.Wait()
}
