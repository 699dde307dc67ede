package portal

import (
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A web page that is not ours is collected as the connector's README says.
func TestRadicale(t *testing.T) {
	program, err := exec.LookPath("radicale")
	if err != nil {
		t.Skip("SKIPPED: radicale is not installed; apt-get install radicale") // .ci/run installs it
	}
	o := newOwner(t)
	o.url = startRadicale(t, o, program)
	for _, path := range []string{"/sam/work/", "/sam/home/"} {
		req, err := http.NewRequestWithContext(t.Context(), "MKCALENDAR", o.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("sam", password)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			t.Fatalf("MKCALENDAR %s: %s", path, res.Status)
		}
	}
	args := append([]string{"run", built.radicale}, o.grants()...)
	args = append(args, "--config", `{"url":"`+o.url+`","user":"sam"}`)
	o.do(args...).want(t, 0, "collections: 2 collected")
	o.do("records", "radicale", "collections").want(t, 0, o.url+"/sam/work/", o.url+"/sam/home/")
}

// startRadicale starts a server of its own for one test.
func startRadicale(t *testing.T, o *owner, program string) (url string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	cmd := exec.Command(program, "--server-hosts", address, "--auth-type", "htpasswd", "--auth-htpasswd-filename",
		o.keep("users", "sam:"+password+"\n"),
		"--auth-htpasswd-encryption", "plain", "--storage-filesystem-folder", filepath.Join(o.home, "collections"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for began := time.Now(); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return "http://" + address
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("radicale does not listen: %v", err)
		}
	}
}
