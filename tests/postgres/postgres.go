//go:build unix

// Package postgres lends tests a PostgreSQL server of their own: one for each test process.
package postgres

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehost/sluice/store/postgres/server"
)

// User is who tests are on a server: a superuser of it.
const User = server.User

// A Server is a running server of this process.
type Server struct {
	*server.Server
	count atomic.Int64 // of databases
}

// shared is the server of this process, or why there is none.
var shared = sync.OnceValues(func() (*Server, error) {
	s, err := server.New("fsync=off", "full_page_writes=off", "max_connections=300") // of many hosts
	return &Server{Server: s}, err
})

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
	s, err := server.New(settings...)
	check(t, err)
	t.Cleanup(s.Stop)
	return &Server{Server: s}
}

func check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, server.ErrMissing) {
		t.Skip("SKIPPED:", err) // .ci/run installs it
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Database makes an empty database and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	u, err := s.Create(fmt.Sprintf("test_%d", s.count.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Exec runs statements in a database with psql, and returns its rows, fields divided by |.
func (s *Server) Exec(t testing.TB, database, sql string) string {
	t.Helper()
	out, err := s.Server.Exec(database, sql)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Standby starts a hot standby that follows s, for one test.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	b, err := s.Server.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return &Server{Server: b}
}
