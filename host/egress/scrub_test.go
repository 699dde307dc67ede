package egress_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run/redact"
)

// long is a sealed value of which no two parts are the same.
const long = "q7Wz-K2mX9pLr4TnB8vYc3GhJ6sDf1AeU5oZiQkRtVwM"

// TestHeldBack: of a value that is cut anywhere by what is no end of the body, the
// guest gets nothing, however often it asks again.
func TestHeldBack(t *testing.T) {
	broken := errors.New("broken off")
	for cut := range len(long) {
		for _, pad := range []int{0, 1, 32<<10 - cut, 32 << 10, 40_000} {
			src := io.MultiReader(strings.NewReader(strings.Repeat(".", pad)+long[:cut]), iotest.ErrReader(broken))
			r := egress.Scrub(src, map[string][]string{handle: {long}})
			var got []byte
			errs := 0
			for buf := make([]byte, 1000); errs < 3; {
				n, err := r.Read(buf)
				got = append(got, buf[:n]...)
				if err != nil {
					errs++
				}
				if err != nil && !errors.Is(err, broken) {
					t.Fatal(err)
				}
			}
			if bytes.ContainsAny(got, long[:max(1, cut)]) {
				t.Fatalf("%d of %d characters behind %d: …%q", cut, len(long), pad, got[max(0, len(got)-60):])
			}
		}
	}
}

// TestCutShort: a body that is whole, and ends in the middle of a value, ends in its
// handle.
func TestCutShort(t *testing.T) {
	for cut := 4; cut <= len(long); cut++ {
		for name, wrap := range map[string]func(io.Reader) io.Reader{"end": iotest.OneByteReader,
			"late": iotest.DataErrReader} {
			got, err := io.ReadAll(egress.Scrub(wrap(strings.NewReader("you sent "+long[:cut])),
				map[string][]string{handle: {long}, other: {"sent "}}))
			if err != nil || string(got) != "you "+other+handle {
				t.Fatalf("%s: %d characters: %q, %v", name, cut, got, err)
			}
		}
	}
	for _, text := range []string{"", "q7W", "you sent q7Wz-K2m!", "you sent " + handle} {
		got, err := io.ReadAll(egress.Scrub(strings.NewReader(text), map[string][]string{handle: {long}}))
		if err != nil || string(got) != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// breaking echoes a key behind a padding, and cuts the echo as it is asked to.
func breaking(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	pad, _ := strconv.Atoi(q.Get("pad"))
	cut, _ := strconv.Atoi(q.Get("cut"))
	key := r.Header.Get("X-Key")
	echo := []byte(strings.Repeat(".", pad) + key[:min(cut, len(key))])
	w.Header().Set("Content-Type", q.Get("type"))
	flush := http.NewResponseController(w).Flush
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(echo)
	_ = z.Flush()
	switch q.Get("end") {
	case "stall":
		_, _ = w.Write(echo)
		_ = flush()
		<-r.Context().Done()
	case "reset":
		_, _ = w.Write(echo)
		_ = flush()
		panic(http.ErrAbortHandler)
	case "short":
		w.Header().Set("Content-Length", strconv.Itoa(len(echo)+1))
		_, _ = w.Write(echo)
		_ = flush()
		panic(http.ErrAbortHandler)
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	case "checksum":
		w.Header().Set("Content-Encoding", "gzip")
		_ = z.Close()
		packed.Bytes()[packed.Len()-8] ^= 1
		_, _ = w.Write(packed.Bytes())
	case "garbage":
		w.Header().Set("Content-Encoding", "gzip")
		_ = z.Close()
		_, _ = w.Write(append(packed.Bytes(), "no gzip at all"...))
	case "closed": // its end is that of the connection, as of HTTP/1.0
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n%s", q.Get("type"), echo)
			_ = conn.Close()
		}
	case "whole":
		_, _ = w.Write(append(echo, key[min(cut, len(key)):]...))
	}
}

// TestNoPartOfAValue: whatever ends a body that is cut within a value, by whatever way
// the guest reads it, the guest has no four characters of it.
func TestNoPartOfAValue(t *testing.T) {
	plain, e := serve(t, breaking)
	server := httptest.NewUnstartedServer(http.HandlerFunc(breaking))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	port := strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	second := entry(t, "example.com:"+port, true)
	names := &names{answers: map[string][]string{"example.com": {"127.0.0.1"}}}
	for _, base := range []string{plain, "https://example.com:" + port} {
		for _, end := range []string{"stall", "reset", "short", "gzip", "checksum", "garbage", "closed", "limit", "whole"} {
			if end == "closed" && base != plain {
				continue // HTTP/2 has no such end
			}
			for _, way := range []string{"read", "inline", "recorded"} {
				t.Run(end+" "+way+" "+base[:5], func(t *testing.T) {
					c := client(t, egress.Options{Resolver: names, TLS: &tls.Config{RootCAs: roots}}, e, second)
					for _, pad := range []int{0, 32<<10 - 20, 1<<20 + 5} {
						var s *network.Session
						if s = network.NewSession(c); way == "recorded" {
							s = network.NewSession(egress.NewRecorder(c))
						}
						s.Seal("key", handle, long, redact.Forms(long),
							[]abi.Destination{{Origin: base, Placements: []string{"header:x-key"}}})
						for _, cut := range []int{20, len(long) - 1} {
							if end == "stall" && pad != 32<<10-20 {
								continue // they take their time
							}
							got := asked(t, s, base, end, way, pad, cut)
							for i := range len(long) - 3 {
								if strings.Contains(got, long[i:i+4]) {
									t.Fatalf("%d of %d behind %d: …%q", cut, len(long), pad, got[max(0, len(got)-80):])
								}
							}
							if len(got) < min(pad, 1)*1000 {
								t.Errorf("the guest gets %d bytes of %d", len(got), pad)
							}
						}
					}
				})
			}
		}
	}
}

// asked is all that a guest gets of an answer, with reads after its end.
func asked(t *testing.T, s *network.Session, base, end, way string, pad, cut int) (got string) {
	t.Helper()
	kind := []string{"text/plain", "image/png"}[cut%2]
	address := fmt.Sprintf("%s/?end=%s&pad=%d&cut=%d&type=%s", base, end, pad, cut, url.QueryEscape(kind))
	more := ""
	switch end {
	case "stall":
		more = `,"timeout_ms":300`
	case "limit":
		address = strings.Replace(address, "end=limit", "end=whole", 1)
		more = fmt.Sprintf(`,"max_bytes":%d`, pad+cut)
	}
	if way == "inline" {
		more += `,"inline_bytes":200000`
	}
	reply, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(fmt.Sprintf(`{"method":"GET","url":%q,"headers":[["X-Key",%q]]%s}`, address, handle, more), ""))
	if errno != abi.OK {
		return strings.Repeat(".", 1000) // nothing came in time, or too much was announced
	}
	if way == "inline" {
		n := binary.LittleEndian.Uint32(reply)
		got, reply = string(reply[4+n:]), reply[4:4+n]
	}
	var head struct{ Handle uint32 }
	if err := json.Unmarshal(reply, &head); err != nil {
		t.Fatal(err)
	}
	for failed := 0; head.Handle != 0 && failed < 3; {
		b, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, head.Handle, 10_000))
		if errno != abi.OK || len(b) == 0 {
			failed++
			continue
		}
		got += string(b)
	}
	return got
}
