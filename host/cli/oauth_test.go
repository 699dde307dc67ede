package cli_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehost/sluice/host/oauth/oauthtest"
)

// An authority gives out tokens at one address, and wants them at another.
type authority struct {
	*oauthtest.Server
	tokens, api *httptest.Server
}

// planted is the client's secret; it is in oauth.txtar too.
const planted = "planted-client-secret-51b7"

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{Server: &oauthtest.Server{ClientID: "the-client", ClientSecret: planted, Rotate: true,
		Lifetime: 4 * time.Second, Entered: true}}
	a.tokens, a.api = httptest.NewServer(a), httptest.NewServer(a)
	t.Cleanup(a.tokens.Close)
	t.Cleanup(a.api.Close)
	return a
}

// command is "auth end": no token is good any more; "auth refuse CODE": nobody
// consents; "auth FILE": the file becomes a new authorization.
func (a *authority) command(ts *testscript.TestScript, _ bool, args []string) {
	switch args[0] {
	case "end":
		a.Revoke(true)
	case "refuse":
		a.Refuse(args[1])
	default:
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(a.Authorization()), 0o600))
	}
}

// unseen is "unseen PATH…": no file below has a secret of the authority, as it
// is or in base64.
func (a *authority) unseen(ts *testscript.TestScript, _ bool, args []string) {
	secrets := append(a.Issued(), planted)
	if len(secrets) < 4 {
		ts.Fatalf("only %d secrets were given out", len(secrets))
	}
	for _, arg := range args {
		ts.Check(filepath.WalkDir(ts.MkAbs(arg), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, s := range secrets {
				if bytes.Contains(text, []byte(s)) ||
					bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(s))[:20])) {
					ts.Fatalf("%s has %s", path, s)
				}
			}
			return err
		}))
	}
}

// consent is "consent FILE COMMAND…": it opens the page that the command names,
// as a browser would, and waits for the command, whose words go to FILE.
func consent(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(lookPath(ts, args[1]), args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "XDG_DATA_HOME", "SLUICE_CACHE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	pipe, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { cmd.Process.Kill() })
	var said strings.Builder
	page := ""
	for lines := bufio.NewReader(pipe); ; {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if strings.Contains(line, "/authorize?") || strings.Contains(line, "/enter") {
			page = strings.TrimSpace(line)
			status, err := open(page)
			if err != nil || status != http.StatusOK {
				ts.Fatalf("%s: %d, %v", page, status, err)
			}
		}
		if err == io.EOF {
			break
		}
		ts.Check(err)
	}
	if err := cmd.Wait(); err != nil || page == "" {
		ts.Fatalf("%v\n%s", err, said.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(said.String()), 0o600))
}

func open(page string) (int, error) {
	r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(page)
	if err != nil {
		return 0, err
	}
	return r.StatusCode, r.Body.Close()
}
