//go:build unix

// Package postgres lends tests a PostgreSQL server of their own: one for each test process,
// in a temporary directory, behind a Unix socket. It ends with the process, however that ends.
package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// User is who tests are on a server: a superuser of it.
const User = "sluice_test"

// port is the number in the name of the socket; nothing listens on the network.
const port = "5432"

// A Server is a running server of this process.
type Server struct {
	Dir      string // has the socket
	Password string // of User

	bin   string
	as    *syscall.SysProcAttr // an ordinary user, where this process is root
	conf  []string
	lease io.Closer // the server stops when this is closed
	guard *exec.Cmd
	count atomic.Int64 // of databases
}

// shared is the server of this process, or why there is none.
var shared = sync.OnceValues(func() (*Server, error) { return start("fsync=off", "full_page_writes=off") })

// New makes an empty database on the server of this process and returns its URL. It skips
// the test where no server is installed.
func New(t testing.TB) string {
	t.Helper()
	return Shared(t).Database(t)
}

// Shared is the server of this process. It skips the test where no server is installed.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := shared()
	check(t, err)
	return s
}

// Start starts a server for one test, with settings such as "fsync=on".
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := start(settings...)
	check(t, err)
	t.Cleanup(s.Stop)
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errMissing) {
		t.Skip("SKIPPED: postgresql is not installed; apt-get install postgresql") // .ci/run installs it
	}
	if err != nil {
		t.Fatal(err)
	}
}

var errMissing = errors.New("no server is installed")

// programs finds the directory of the newest server that is installed.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if len(found) > 0 {
		return filepath.Dir(found[0]), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", errMissing
	}
	return filepath.Dir(path), nil
}

// ordinary is whom a server runs as: postgres refuses root.
func ordinary() (uid, gid int, err error) {
	if os.Getuid() != 0 {
		return os.Getuid(), os.Getgid(), nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, err
	}
	uid, _ = strconv.Atoi(who.Uid)
	gid, _ = strconv.Atoi(who.Gid)
	return uid, gid, nil
}

func start(settings ...string) (s *Server, err error) {
	s = &Server{Password: rand.Text(), conf: settings}
	if s.bin, err = programs(); err != nil {
		return nil, err
	}
	uid, gid, err := ordinary()
	if err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	if s.Dir, err = os.MkdirTemp("", "sluice-postgres-"); err != nil {
		return nil, err
	}
	password := filepath.Join(s.Dir, "password")
	if err := os.WriteFile(password, []byte(s.Password), 0o600); err != nil {
		return nil, err
	}
	for _, path := range []string{s.Dir, password} {
		if err := os.Chown(path, uid, gid); err != nil {
			return nil, err
		}
	}
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), "--no-sync", "--encoding=UTF8", "--locale=C", "--username="+User,
		"--auth=scram-sha-256", "--pwfile="+password, "--pgdata="+filepath.Join(s.Dir, "data"))
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = s.Dir, s.as, &said, &said
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w\n%s", err, said.String()), os.RemoveAll(s.Dir))
	}
	return s, s.Start()
}

// The guard ends the server, and removes its directory, when its standard input ends:
// that is when this process is over.
const guard = `dir=$1; shift
"$@" >"$dir/log" 2>&1 </dev/null &
read -r how
kill -s "${how:-QUIT}" $!
wait $!
[ -n "$how" ] || rm -rf "$dir"`

// Start starts the server anew after Crash.
func (s *Server) Start() error {
	args := []string{"-c", guard, "guard", s.Dir, filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.Dir, "data"), "-k", s.Dir, "-p", port,
		"-c", "listen_addresses=", "-c", "max_connections=50", "-c", "log_min_messages=warning"}
	for _, c := range s.conf {
		args = append(args, "-c", c)
	}
	s.guard = exec.Command("/bin/sh", args...)
	s.guard.Dir, s.guard.SysProcAttr = s.Dir, s.as
	in, err := s.guard.StdinPipe()
	if err != nil {
		return err
	}
	s.lease = in
	if err := s.guard.Start(); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		ready := exec.Command(filepath.Join(s.bin, "pg_isready"), "-q", "-h", s.Dir, "-p", port, "-U", User, "-d", "postgres")
		if ready.Run() == nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("the server does not start: %s", s.Log())
		}
	}
}

// Log is what the server wrote since it was started.
func (s *Server) Log() string {
	b, err := os.ReadFile(filepath.Join(s.Dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Crash ends the server at once, as if it was killed, and keeps its data.
func (s *Server) Crash() error {
	if _, err := io.WriteString(s.lease.(io.Writer), "QUIT\n"); err != nil {
		return err
	}
	_ = s.guard.Wait() // it ends with whatever the server ends with
	return nil
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() {
	_ = s.lease.Close()
	_ = s.guard.Wait()
	_ = os.RemoveAll(s.Dir)
}

// Database makes an empty database and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", s.count.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return s.URL(User, s.Password, name)
}

// URL is that of a database for a user.
func (s *Server) URL(user, password, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Path: "/" + database,
		RawQuery: url.Values{"host": {s.Dir}, "port": {port}}.Encode()}).String()
}

// Exec runs statements in a database with psql, and returns its rows, fields divided by |.
func (s *Server) Exec(t testing.TB, database, sql string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", s.URL(User, s.Password, database))
	cmd.Stdin, cmd.Dir = strings.NewReader(sql), "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// Standby starts a hot standby that follows s, for one test.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	b := &Server{Password: s.Password, bin: s.bin, as: s.as, conf: s.conf}
	uid, gid, err := ordinary()
	if err == nil {
		b.Dir, err = os.MkdirTemp("", "sluice-postgres-")
	}
	if err == nil {
		err = os.Chown(b.Dir, uid, gid)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(s.bin, "pg_basebackup"), "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync",
		"--pgdata="+filepath.Join(b.Dir, "data"), "--dbname=host="+s.Dir+" port="+port+" user="+User+" password="+s.Password)
	cmd.Dir, cmd.SysProcAttr = b.Dir, s.as
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = b.Start()
	}
	if err != nil {
		t.Fatal(errors.Join(fmt.Errorf("%w: %s", err, out), os.RemoveAll(b.Dir)))
	}
	t.Cleanup(b.Stop)
	return b
}

// Dial connects to the server's socket.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.Dir, ".s.PGSQL."+port))
}
