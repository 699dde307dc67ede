package caldav_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	user     = "sam"
	password = "correct horse: battery/staple"
)

// A radicale is a server for one test alone.
type radicale struct {
	url     string
	storage string
	log     string
	stop    func()
}

// startRadicale starts Debian's Radicale on a free port of this machine.
func startRadicale(t *testing.T) *radicale {
	t.Helper()
	program, err := exec.LookPath("radicale")
	if err != nil {
		t.Skip("SKIPPED: radicale is not installed; apt-get install radicale") // .ci/run installs it
	}
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	r := &radicale{url: "http://" + address, storage: filepath.Join(dir, "collections"), log: filepath.Join(dir, "log")}
	write(t, filepath.Join(dir, "users"), user+":"+password+"\n")
	write(t, filepath.Join(dir, "config"),
		fmt.Sprintf("[server]\nhosts = %s\n[auth]\ntype = htpasswd\nhtpasswd_filename = %s/users\nhtpasswd_encryption = plain\ndelay = 0\n"+
			"[storage]\nfilesystem_folder = %s\n[web]\ntype = none\n", address, dir, r.storage))
	log, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), program, "--config", filepath.Join(dir, "config"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.stop = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("radicale said:\n%s", r.said(t))
		}
	})
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return r
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("radicale does not listen: %v\n%s", err, r.said(t))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *radicale) said(t *testing.T) []byte {
	b, err := os.ReadFile(r.log)
	if err != nil {
		t.Error(err)
	}
	return b
}

// do makes a request as the user would.
func (r *radicale) do(t *testing.T, method, path, kind, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s\n%s", method, path, resp.Status, said)
	}
}

func (r *radicale) calendar(t *testing.T, path, name string) {
	r.do(t, "MKCALENDAR", path, "application/xml",
		`<C:mkcalendar xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><set><prop><displayname>`+name+
			`</displayname></prop></set></C:mkcalendar>`)
}

func (r *radicale) addressBook(t *testing.T, path, name string) {
	r.do(t, "MKCOL", path, "application/xml",
		`<mkcol xmlns="DAV:" xmlns:A="urn:ietf:params:xml:ns:carddav"><set><prop><resourcetype><collection/><A:addressbook/></resourcetype><displayname>`+name+`</displayname></prop></set></mkcol>`)
}

// put stores an event, task or contact from its lines.
func (r *radicale) put(t *testing.T, path string, lines ...string) {
	t.Helper()
	text, kind := strings.Join(lines, "\r\n")+"\r\n", "text/vcard; charset=utf-8"
	if strings.HasSuffix(path, ".ics") {
		text = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n" + text + "END:VCALENDAR\r\n"
		kind = "text/calendar; charset=utf-8"
	}
	r.do(t, http.MethodPut, path, kind, text)
}

func (r *radicale) remove(t *testing.T, path string) { r.do(t, http.MethodDelete, path, "", "") }

// forgetTokens makes the server lose all its sync tokens, like one that was restored
// from a backup.
func (r *radicale) forgetTokens(t *testing.T) {
	t.Helper()
	lost := 0
	err := filepath.WalkDir(r.storage, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "sync-token" {
			lost++
			return errorOrSkip(os.RemoveAll(path))
		}
		return err
	})
	if err != nil || lost == 0 {
		t.Fatalf("no tokens to lose: %v", err)
	}
}

func errorOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// refusedTokens counts the sync tokens that the server did not know.
func (r *radicale) refusedTokens(t *testing.T) int {
	return bytes.Count(r.said(t), []byte("Client provided invalid sync token"))
}
