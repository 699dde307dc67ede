package api

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A reader of an export who takes a little now and then, always in time for
// the write deadline, does not hold its commit and its place for ever; one who is
// merely slow gets all of it.
func TestSlowReaderOfExport(t *testing.T) {
	for _, x := range []struct {
		name  string
		every time.Duration // for each KiB
		fails bool
	}{{"drip", time.Second / 2, true}, {"slow", time.Second / 32, false}} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				theirs, ours := net.Pipe()
				var reading sync.WaitGroup
				reading.Go(func() {
					b := make([]byte, 1<<10)
					for {
						if _, err := theirs.Read(b); err != nil {
							return
						}
						time.Sleep(x.every)
					}
				})
				p := &pacedWriter{w: bufio.NewWriter(ours), conn: ours}
				began := time.Now()
				var err error
				for n := 0; n < 64 && err == nil; n++ {
					_, err = p.Write(make([]byte, 32<<10))
				}
				if errors.Is(err, errSlow) != x.fails || !x.fails && err != nil {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				ours.Close()
				reading.Wait()
			})
		})
	}
}
