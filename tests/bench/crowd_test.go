//go:build unix

package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// A crowd is many clients of one event stream in a process of their own, so that their
// memory does not count as the host's. The environment tells it their number and the
// stream's address, path and key.
const crowdEnv = "SLUICE_BENCH_CROWD"

// crowdOf is the number of clients.
const crowdOf = 5000

// beCrowd prints ready once all streams have begun, and then, for every stamp that all
// clients have received, how many nanoseconds that took. It ends with its input.
func beCrowd(told string) error {
	f := strings.Fields(told)
	n, err := strconv.Atoi(f[0])
	if err != nil {
		return err
	}
	began, got := make(chan error, n), make(chan int64, n)
	turns := make(chan struct{}, 32)
	for range n {
		go func() {
			turns <- struct{}{}
			lines, err := join(f[1], f[2], f[3])
			<-turns
			if began <- err; err == nil {
				listenTo(lines, got)
			}
		}()
	}
	for range n {
		if err := <-began; err != nil {
			return err
		}
	}
	fmt.Println("ready")
	go func() {
		have := map[int64]int{}
		for sent := range got {
			if have[sent]++; have[sent] == n {
				fmt.Println(time.Now().UnixNano() - sent)
			}
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// join opens the stream and reads until its first line.
func join(addr, path, key string) (*bufio.Reader, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path,
		addr, key)
	lines := bufio.NewReaderSize(conn, 2<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("a stream did not begin: %w", err)
		}
		if bytes.HasPrefix(line, []byte("retry:")) {
			return lines, nil
		}
	}
}

func listenTo(lines *bufio.Reader, got chan<- int64) {
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		if _, rest, ok := bytes.Cut(line, []byte(`"chunk":"`)); ok && len(rest) > 19 {
			if sent, err := strconv.ParseInt(string(rest[:19]), 10, 64); err == nil {
				got <- sent
			}
		}
	}
}

// resident returns the resident memory of this process, which is the host, at rest.
func resident(b *testing.B) float64 {
	debug.FreeOSMemory()
	return float64(memory(b).host) / 1024
}

// BenchmarkCrowd has 5,000 clients follow one run. It measures the host's memory while
// nothing happens (goal: 250 MB), how long a guest's message takes to the last client
// (goal: 250 ms), and how long the host takes to notice that all of them left at once
// (goal: 2 s). Host and clients share the machine.
func BenchmarkCrowd(b *testing.B) {
	for b.Loop() {
		h, _ := emptyService(b)
		b.Cleanup(func() { h.Close() })
		connect(b, h, "one", step{"do": "otp", "text": "Code?"}, step{"do": "stamp", "n": 10, "ms": 1500},
			step{"do": "otp", "text": "Done?"})
		id := startRun(b, h, "one")
		asked := waitFor(b, h, id, served.Asks)
		tcp, err := h.TCP(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		before, alone := resident(b), runtime.NumGoroutine()
		says, leave := gather(b, h, tcp.Key, id, crowdOf)
		b.ReportMetric(resident(b)-before, "idle-MiB")
		if err := h.Answer(b.Context(), asked, map[string]any{"answers": map[string]any{"code": "1"}}); err != nil {
			b.Fatal(err)
		}
		var all []time.Duration
		for len(all) < 10 && says.Scan() {
			took, err := strconv.ParseInt(says.Text(), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, time.Duration(took))
		}
		if len(all) < 10 {
			b.Fatalf("%d messages came to all", len(all))
		}
		percentiles(b, "to-all", all)
		left := time.Now()
		leave()
		for runtime.NumGoroutine() > alone+crowdOf/100 {
			time.Sleep(5 * time.Millisecond)
		}
		b.ReportMetric(float64(time.Since(left).Microseconds())/1000, "missed-ms")
	}
}

// gather has n clients follow a run of a host. It returns what they say behind their being there, and
// how they leave.
func gather(b *testing.B, h *served.Host, key string, id store.RunID, n int) (says *bufio.Scanner, leave func()) {
	b.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(),
		fmt.Sprintf("%s=%d %s /v1/runs/%s/events?streamMode=debug %s", crowdEnv, n, h.Address(), id, key))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); c.Wait() })
	says = bufio.NewScanner(out)
	if !says.Scan() || says.Text() != "ready" {
		b.Fatal("the crowd did not gather")
	}
	return says, func() { in.Close() }
}

// everybody is a hub with room for the whole crowd.
func everybody() stream.Options {
	return stream.Options{PerRun: 2 * crowdOf, PerKey: 2 * crowdOf, Total: 2 * crowdOf}
}
