package destinationtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination"
)

// Environment variables of a child process that feeds a destination until it is killed.
const (
	childURL   = "SLUICE_TEST_FEED_URL"
	childMarks = "SLUICE_TEST_FEED_MARKS"
)

// Child feeds a destination if the test binary was started for that, and then does not return. TestMain calls it.
func Child(kinds ...destination.Kind) {
	url := os.Getenv(childURL)
	if url == "" {
		return
	}
	kind, err := destination.Kinds(kinds).Of(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	signal.Ignore(os.Interrupt)
	ctx := context.Background()
	o := owner
	if dir := os.Getenv(childMarks); dir != "" {
		o.Marks = DirMarks(dir)
	}
	sink, err := kind.Open(ctx, url, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("feeding")
	holdings, err := sink.Holdings(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for step := 1; ; step++ {
		src := history(step * killStep)
		if h, ok := holdings[src.id]; ok && h.Mark > src.version {
			continue
		}
		if err := src.bring(sink, destination.Current); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if step == 400 {
			os.Exit(0)
		}
	}
}

const killStep = 40 // changes that the child brings in at a time

// history returns a stream after its first n changes, which are always the same. Later changes have other types and
// additional fields.
func history(n int) *source {
	r := rand.New(rand.NewPCG(7, 7)) // #nosec G404 -- a test
	src := newSource()
	for i := range n {
		key := fmt.Sprintf("k%03d", r.IntN(200))
		if r.IntN(5) == 0 {
			src.drop(key)
		} else {
			more := ""
			if i > 600 {
				more = fmt.Sprintf(`,"more":%d`, i)
			}
			if i > 1000 {
				more = fmt.Sprintf(`,"more":"%d"`, i)
			}
			src.put(key, fmt.Sprintf(`{"n":%d,"text":"%d"%s}`, r.IntN(1000), r.IntN(10), more))
		}
	}
	return src
}

// Kill kills a process that feeds a destination at random instants, times times, and each time compares the table with
// its mark.
func Kill(t *testing.T, p Place, times int) {
	for n := range times {
		child := exec.Command(os.Args[0], "-test.run=^$") // #nosec G204 G702 -- this binary
		child.Env = append(os.Environ(), childURL+"="+p.URL)
		if dir, ok := p.Marks.(DirMarks); ok {
			child.Env = append(child.Env, childMarks+"="+string(dir))
		}
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatalf("the child did not begin: %v", err)
		}
		time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond) // #nosec G404 -- a test
		_ = child.Process.Kill()
		_ = child.Wait()
		s := open(t, p)
		holdings, err := s.Holdings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		src := history(0)
		h, ok := holdings[src.id]
		if ok || p.Marks != nil {
			src = history(int(h.Mark)) // #nosec G115 -- small
		}
		if p.Marks != nil { // what was taken after the mark is sent again
			src = history(int(h.Mark) + killStep) // #nosec G115 -- small
			if err := src.bring(s, destination.Current); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !ok && p.Marks == nil {
			continue
		}
		check(t, p, src, destination.Current)
		if n == times-1 {
			t.Logf("%d changes were there after %d kills", h.Mark, times)
		}
	}
}

// Kills returns how often to kill: SLUICE_CYCLES times if that is set, as in make soak, otherwise slice.
func Kills(slice int) int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_CYCLES")); err == nil {
		return n
	}
	return slice
}
