package network_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// TestAhead: a body that is read ahead is the body, in order and to its error,
// and of a server without end no more is taken than fits.
func TestAhead(t *testing.T) {
	body := make([]byte, 5<<20+7)
	for i := range body {
		body[i] = byte(rand.Uint32())
	}
	sent := make(chan int, 1)
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/whole":
			_, _ = w.Write(body)
		case "/cut":
			w.Header().Set("Content-Length", "6000000")
			_, _ = w.Write(body)
			panic(http.ErrAbortHandler)
		case "/endless":
			n := 0
			for {
				k, err := w.Write(body[:1<<16])
				if n += k; err != nil || n > 64<<20 {
					sent <- n
					return
				}
			}
		case "/stalls":
			_, _ = w.Write(body[:2<<20])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	ask := func(path string) uint32 { return handleOf(t, s, base+path) }
	read := func(ctx context.Context, handle uint32, most int) ([]byte, abi.Errno) {
		return s.Handle(ctx, abi.CallRead, abi.AppendRead(nil, handle, uint32(most)))
	}
	all := func(handle uint32) (got []byte, errno abi.Errno) {
		for {
			b, errno := read(t.Context(), handle, 1+rand.IntN(300_000))
			if errno != abi.OK || len(b) == 0 {
				return got, errno
			}
			got = append(got, b...)
		}
	}
	if got, errno := all(ask("/whole")); errno != abi.OK || !bytes.Equal(got, body) {
		t.Errorf("%d bytes, %v; want %d", len(got), errno, len(body))
	}
	if got, errno := all(ask("/cut")); errno != abi.EUNAVAIL || !bytes.HasPrefix(body, got) || len(got) < 1<<20 {
		t.Errorf("cut: %d bytes, %v", len(got), errno)
	}

	endless := ask("/endless")
	if _, errno := read(t.Context(), endless, 1); errno != abi.OK {
		t.Error(errno)
	}
	time.Sleep(200 * time.Millisecond) // for what it takes without being asked
	if _, errno := s.Handle(t.Context(), abi.CallClose, binary.LittleEndian.AppendUint32(nil, endless)); errno != abi.OK {
		t.Error(errno)
	}
	if n := <-sent; n > 32<<20 { // most of it lies in the sockets
		t.Errorf("%d MiB were taken of a body nobody reads", n>>20)
	}

	stalls := ask("/stalls")
	for got := 0; got < 2<<20; {
		b, errno := read(t.Context(), stalls, 1<<20)
		if got += len(b); errno != abi.OK {
			t.Fatal(errno)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, errno := read(ctx, stalls, 1<<20); errno != abi.ECANCELED {
		t.Errorf("a read that was called off: %v", errno)
	}
	for range 20 { // more than are read ahead at once
		ask("/stalls")
	}
	if err := s.Close(); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestAheadAllocates: a short body of unknown length takes no pieces of its own.
func TestAheadAllocates(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 20_000)) // chunked, since it is longer than the server's buffer
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	defer func() { _ = s.Close() }()
	one := func() {
		handle, got := handleOf(t, s, base+"/"), 0
		for {
			b, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, handle, 32<<10))
			if errno != abi.OK {
				t.Fatal(errno)
			}
			if got += len(b); len(b) == 0 {
				break
			}
		}
		if got != 20_000 {
			t.Fatalf("%d bytes", got)
		}
		if _, errno := s.Handle(t.Context(), abi.CallClose, binary.LittleEndian.AppendUint32(nil, handle)); errno != abi.OK {
			t.Fatal(errno)
		}
	}
	const bodies = 64
	var before, after runtime.MemStats
	one()
	runtime.ReadMemStats(&before)
	for range bodies {
		one()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / bodies; each > 256<<10 {
		t.Errorf("%d bytes are allocated for a body", each)
	}
}

func handleOf(t *testing.T, s *network.Session, address string) uint32 {
	t.Helper()
	reply, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(`{"method":"GET","url":"`+address+`","max_bytes":100000000}`, ""))
	var head struct{ Handle uint32 }
	if err := json.Unmarshal(reply, &head); err != nil || errno != abi.OK {
		t.Fatalf("%s: %s, %v", address, reply, err)
	}
	return head.Handle
}
