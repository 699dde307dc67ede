package browsing_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// names are the file names that hostile servers send, and what becomes of them.
var names = map[string]string{
	"plain":    `attachment; filename="report.csv"`,
	"parent":   `attachment; filename="../../../../etc/cron.d/evil"`,
	"encoded":  `attachment; filename*=UTF-8''..%2F..%2Fevil.sh`,
	"windows":  `attachment; filename="..\\..\\evil.exe"`,
	"both":     `attachment; filename="a.txt"; filename*=UTF-8''%2Froot%2F.profile`,
	"nothing":  `attachment`,
	"dots":     `attachment; filename=".."`,
	"newline":  `attachment; filename*=UTF-8''a%0d%0ab.txt`,
	"enormous": `attachment; filename="` + strings.Repeat("x", 4000) + `"`,
}

func fileServer(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("/file/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", names[r.PathValue("name")])
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		_, _ = fmt.Fprintf(w, "this is %s", r.PathValue("name"))
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="slow.csv"`)
		_, _ = w.Write(make([]byte, 1<<16))
		w.(http.Flusher).Flush()
		time.Sleep(3 * time.Second) // longer than an action waits for its proof
		_, _ = w.Write([]byte("end"))
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="endless.bin"`)
		for part := make([]byte, 1<<20); r.Context().Err() == nil; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/claims", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="large.bin"`)
		w.Header().Set("Content-Length", fmt.Sprint(1<<40))
		_, _ = w.Write(make([]byte, 1<<16))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("<!doctype html>"))
		for name := range names {
			_, _ = fmt.Fprintf(w, "<p><a id=%s href=/file/%s>%s</a>", name, name, name)
		}
		_, _ = w.Write([]byte(`<p><a id=slow href=/slow>slow</a><p><a id=endless href=/endless>endless</a><p><a id=claims href=/claims>claims</a>
<p><a id=window href=/file/plain target=_blank>window</a>
<p><button id=many onclick="let i=0;const t=setInterval(()=>{const f=document.createElement('iframe');f.src='/file/plain?'+i;document.body.append(f);setTimeout(()=>f.remove(),500);if(++i==1000)clearInterval(t)},4)">many</button>`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

func clickFor(id string) browsing.M {
	return browsing.M{"verb": "click", "target": browsing.Selector("id", id),
		"expect": browsing.M{"kind": "download"}, "budget_ms": 20000}
}

// files returns the downloads of a reply.
func files(r browsing.Reply) (list []map[string]any) {
	all, _ := r.Details["downloads"].([]any)
	for _, d := range all {
		list = append(list, d.(map[string]any))
	}
	return list
}

// drain reads a handle to its end and closes it.
func drain(t *testing.T, s *browsing.Session, handle any) []byte {
	t.Helper()
	n, ok := handle.(float64)
	if !ok {
		t.Fatalf("no handle: %v", handle)
	}
	var all []byte
	for {
		part, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, uint32(n), 64<<10))
		if errno != abi.OK {
			t.Fatalf("read: %v", errno)
		}
		if len(part) == 0 {
			break
		}
		all = append(all, part...)
	}
	if _, errno := s.Handle(t.Context(), abi.CallClose,
		binary.LittleEndian.AppendUint32(nil, uint32(n))); errno != abi.OK {
		t.Fatalf("close: %v", errno)
	}
	return all
}

// onDisk returns how many files and bytes are in a browser's directory of downloads.
func onDisk(t *testing.T, data string) (count int, size int64) {
	t.Helper()
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, "/downloads/") {
			return nil // the browser removes files as it is looked at
		}
		if info, err := d.Info(); err == nil {
			count, size = count+1, size+info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return count, size
}

// Files of hostile servers reach the guest as bytes with a harmless name, and leave
// nothing on the disk; a download that is too large, or one too many, is cut off.
func TestDownloads(t *testing.T) {
	site, data := fileServer(t), browsing.Dir(t)
	h := browsing.Host(t, browser.Options{Data: data, ActionsPerMinute: 1000})
	notices := make(chan string, len(names)+1)
	tell := func(code, name string) {
		select {
		case notices <- code + " " + name:
		default: // of those that come later nothing is asked
		}
	}
	s := browsing.Begin(t, h, browser.SessionOptions{Request: abi.BrowserRequest{Downloads: true}, Notice: tell}, site)
	s.Must(browsing.M{"verb": "open", "url": site + "/"})
	for name := range names {
		r := s.Must(clickFor(name))
		got := files(r)
		if len(got) != 1 || !r.Success {
			t.Fatalf("%s: %s", name, r.Raw)
		}
		called, _ := got[0]["name"].(string)
		if called == "" || called == ".." || len(called) > 255 || strings.ContainsAny(called, "/\\\r\n") {
			t.Errorf("%s is called %q", name, called)
		}
		if body := drain(t, s, got[0]["handle"]); string(body) != "this is "+name {
			t.Errorf("%s: %q", name, body)
		}
		if got[0]["mime"] != "text/csv" || got[0]["url_host"] != strings.TrimPrefix(site, "http://") ||
			got[0]["bytes"] != float64(len("this is "+name)) {
			t.Errorf("%s: %v", name, got[0])
		}
		if bytes.Contains(r.Raw, []byte(data)) {
			t.Errorf("%s: a path of the host's in %s", name, r.Raw)
		}
	}
	if n, _ := onDisk(t, data); n != 0 {
		t.Errorf("%d files are left", n)
	}

	t.Run("sealed", func(t *testing.T) { // what a site gives back of a secret reads as its handle
		const handle = "sluice-sealed-v1-abcdefghijklmnopqrstuvwxyz"
		s.Seal("token", handle, " is plain", [][]byte{[]byte(" is plain")}, nil)
		got := files(s.Must(clickFor("plain")))
		if len(got) != 1 || got[0]["bytes"] != float64(len("this"+handle)) ||
			string(drain(t, s, got[0]["handle"])) != "this"+handle {
			t.Errorf("%v", got)
		}
	})
	t.Run("notices", func(t *testing.T) {
		for n := len(names) + 1; n > 0; n-- {
			select {
			case got := <-notices:
				if code, name, _ := strings.Cut(got, " "); code != "download_done" || name == "" ||
					strings.ContainsAny(name, "/\\\r\n") {
					t.Errorf("%q", got)
				}
			case <-time.After(2 * time.Minute):
				t.Fatalf("%d are missing", n)
			}
		}
	})
	t.Run("window", func(t *testing.T) { // the page of the request is gone before the file is there
		r := s.Must(clickFor("window"))
		if got := files(r); len(got) != 1 || !strings.HasPrefix(string(drain(t, s, got[0]["handle"])), "this") {
			t.Errorf("%s", r.Raw)
		}
	})
	t.Run("slow", func(t *testing.T) { // handed over by the reply that comes after its end
		s.Must(browsing.M{"verb": "click", "target": browsing.Selector("id", "slow")})
		r := s.Must(browsing.M{"verb": "expect", "expect": browsing.M{"kind": "download", "name_matches": "slow.csv"},
			"timeout_ms": 10000})
		var reply struct{ Downloads []map[string]any }
		decode(t, r.Raw, &reply)
		if len(reply.Downloads) != 1 || len(drain(t, s, reply.Downloads[0]["handle"])) != 1<<16+3 {
			t.Errorf("%s", r.Raw)
		}
	})
	for _, name := range []string{"claims", "endless"} {
		t.Run(name, func(t *testing.T) {
			r := s.Call(clickFor(name))
			if r.State != "failed" {
				t.Fatalf("%s", r.Raw)
			}
			for end := time.Now().Add(90 * time.Second); ; {
				n, size := onDisk(t, data)
				if size > 400<<20 {
					t.Fatalf("%d MiB were saved", size>>20)
				}
				if n == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d files are left", n)
				}
			}
			t.Logf("%v", files(r))
		})
	}
	t.Run("many", func(t *testing.T) {
		s.Call(browsing.M{"verb": "click", "target": browsing.Selector("id", "many")})
		kept, ended := 0, 0
		for end := time.Now().Add(90 * time.Second); ended < 100 && time.Now().Before(end); {
			var reply struct{ Downloads []map[string]any }
			decode(t, s.Call(browsing.M{"verb": "expect", "expect": browsing.M{"kind": "download"}, "timeout_ms": 1000}).Raw,
				&reply)
			for _, f := range reply.Downloads {
				if f["handle"] != nil {
					kept++
					drain(t, s, f["handle"])
				}
				if f["reason"] == "too_many" {
					ended++
				}
			}
		}
		t.Logf("%d were kept, %d ended", kept, ended)
		if kept > 10 || ended == 0 { // 12 there were before
			t.Errorf("%d were kept, %d ended", kept, ended)
		}
		// away from a page that is still busy with the many
		s.Must(browsing.M{"verb": "navigate", "url": site + "/", "deadline_ms": 60000})
		r := s.Call(clickFor("plain"))
		if r.State != "failed" || len(files(r)) == 0 || files(r)[len(files(r))-1]["reason"] != "too_many" {
			t.Errorf("%s", r.Raw)
		}
		if n, _ := onDisk(t, data); n > 60 { // small ones are saved before they can be ended
			t.Errorf("%d files on the disk", n)
		}
	})
}

// Without the capability nothing is saved, and nothing of it reaches the guest.
func TestDownloadsDenied(t *testing.T) {
	site, data := fileServer(t), browsing.Dir(t)
	notices := make(chan string, 1000)
	s := browsing.Begin(t, browsing.Host(t, browser.Options{Data: data}),
		browser.SessionOptions{Notice: func(code, _ string) { notices <- code }}, site)
	s.Must(browsing.M{"verb": "open", "url": site + "/"})
	r := s.Call(clickFor("plain"))
	if got := <-notices; got != "download_denied" {
		t.Errorf("the owner is told %s", got)
	}
	if got := files(r); r.State != "failed" || len(got) != 1 || got[0]["denied"] != true || got[0]["handle"] != nil {
		t.Errorf("%s", r.Raw)
	}
	s.Call(browsing.M{"verb": "click", "target": browsing.Selector("id", "many")})
	if n, _ := onDisk(t, data); n != 0 {
		t.Errorf("%d files were saved", n)
	}
}
