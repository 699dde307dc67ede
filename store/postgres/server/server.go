// Package server runs a private PostgreSQL server for demos and tests: in a temporary directory, on a Unix socket, with
// the installed programs. It ends with the process that started it, even if that is killed. Its data is not meant to
// last.
package server

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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// User is the name of the superuser, who connects by default.
const User = "postgres"

// Port is the number in the name of the socket; the server does not listen on the network.
const Port = "5432"

// A Server is a running server.
type Server struct {
	Dir      string // contains the socket
	Password string // of User

	bin   string
	as    *syscall.SysProcAttr // an unprivileged user if this process is root
	conf  []string
	lease io.WriteCloser // the server stops when this is closed
	guard *exec.Cmd
}

// ErrMissing reports that no server is installed.
var ErrMissing = errors.New("PostgreSQL's server is not installed; apt-get install postgresql")

// programs returns the directory of the newest installed server.
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
		return "", ErrMissing
	}
	return filepath.Dir(path), nil
}

// New starts a server with settings such as "fsync=off".
func New(settings ...string) (s *Server, err error) {
	s = &Server{Password: rand.Text(), conf: settings}
	if s.bin, err = programs(); err != nil {
		return nil, err
	}
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	password := filepath.Join(s.Dir, "password")
	if err = os.WriteFile(password, []byte(s.Password), 0o600); err == nil {
		err = s.own(password)
	}
	if err == nil {
		err = s.initialise(password)
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	return s, nil
}

// makeDir creates a directory that belongs to the server's user.
func (s *Server) makeDir() (err error) {
	if s.Dir, err = os.MkdirTemp("", "sluice-postgres-"); err != nil {
		return err
	}
	if err = s.ordinary(); err == nil {
		err = s.own(s.Dir)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

func (s *Server) initialise(password string) error {
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), "--no-sync", "--encoding=UTF8", "--locale=C", "--username="+User, // #nosec G204 -- a program that is installed
		"--auth=scram-sha-256", "--pwfile="+password, "--pgdata="+filepath.Join(s.Dir, "data"))
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = s.Dir, s.as, &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, said.String())
	}
	return nil
}

// guard ends the server and removes its directory when its standard input ends, which happens when this process ends.
const guard = `dir=$1; shift
"$@" >"$dir/log" 2>&1 </dev/null &
read -r how
kill -s "${how:-QUIT}" $!
wait $!
[ -n "$how" ] || rm -rf "$dir"`

// startTime bounds how long a server may take to start.
const startTime = time.Minute

// Start starts the server, again after Crash.
func (s *Server) Start() error {
	args := []string{"-c", guard, "guard", s.Dir, filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.Dir, "data"),
		"-k", s.Dir, "-p", Port,
		"-c", "listen_addresses=", "-c", "max_connections=50", "-c", "log_min_messages=warning"}
	for _, c := range s.conf {
		args = append(args, "-c", c)
	}
	s.guard = exec.Command("/bin/sh", args...) // #nosec G204 -- a program that is installed
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
		ready := exec.Command(filepath.Join(s.bin, "pg_isready"), "-q", "-h", s.Dir, "-p", Port, "-U", User, "-d", "postgres") // #nosec G204 -- as above
		if ready.Run() == nil {
			return nil
		}
		if time.Since(began) > startTime {
			said := s.Log()
			s.Stop()
			return fmt.Errorf("the server does not start: %s", said)
		}
	}
}

// Log returns what the server has logged since it was started.
func (s *Server) Log() string {
	b, err := os.ReadFile(filepath.Join(s.Dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Crash ends the server immediately, as if it was killed, and keeps its data.
func (s *Server) Crash() error {
	if _, err := io.WriteString(s.lease, "QUIT\n"); err != nil {
		return err
	}
	_ = s.guard.Wait() // its status is that of the server
	return nil
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() {
	_ = s.lease.Close()
	_ = s.guard.Wait()
	_ = os.RemoveAll(s.Dir)
}

// URL returns the URL of a database for a user.
func (s *Server) URL(user, password, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Path: "/" + database,
		RawQuery: url.Values{"host": {s.Dir}, "port": {Port}}.Encode()}).String()
}

// Create makes an empty database and returns its URL for User.
func (s *Server) Create(database string) (string, error) {
	_, err := s.Exec("postgres", "CREATE DATABASE "+database)
	return s.URL(User, s.Password, database), err
}

// Exec runs statements in a database with psql and returns the rows, with fields separated by |.
func (s *Server) Exec(database, sql string) (string, error) {
	cmd := exec.Command(filepath.Join(s.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", s.URL(User, s.Password, database)) // #nosec G204 -- as above
	cmd.Stdin, cmd.Dir = strings.NewReader(sql), "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Standby starts a hot standby that follows s.
func (s *Server) Standby() (b *Server, err error) {
	b = &Server{Password: s.Password, bin: s.bin, conf: s.conf}
	if err := b.makeDir(); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(s.bin, "pg_basebackup"), "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync", // #nosec G204 -- as above
		"--pgdata="+filepath.Join(b.Dir, "data"), "--dbname=host="+s.Dir+" port="+Port+" user="+User+" password="+s.Password)
	cmd.Dir, cmd.SysProcAttr = b.Dir, b.as
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, out), os.RemoveAll(b.Dir))
	}
	if err := b.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.Dir))
	}
	return b, nil
}

// Dial connects to the server's socket.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.Dir, ".s.PGSQL."+Port))
}
