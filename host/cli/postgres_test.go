//go:build unix

package cli_test

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehost/sluice/tests/postgres"
)

// TestPostgres runs testdata/postgres: each script has a database, $DATABASE, of a server that
// does not sync.
func TestPostgres(t *testing.T) {
	server := postgres.Shared(t)
	p := scripts(t, "testdata/postgres", "examples/stdio", "host/cli/testdata/fixture")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		url := server.Database(t)
		e.Setenv("DATABASE", url+"&durability=weak")
		e.Setenv("SYNCED", url)
		e.Setenv("WRONG", strings.Replace(url, server.Password, "not-the-password", 1))
		e.Setenv("PASSWORD", server.Password)
		return setup(e)
	}
	testscript.Run(t, p)
}
