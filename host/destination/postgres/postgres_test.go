//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

func TestMain(m *testing.M) {
	destinationtest.Child(postgres.Kind{})
	os.Exit(m.Run())
}

func place(t *testing.T) destinationtest.Place { return placeAt(server.New(t)) }

func placeAt(at string) destinationtest.Place {
	return destinationtest.Place{
		Kind: postgres.Kind{}, URL: at,
		File: func(t *testing.T, digest, _ string) (b []byte) {
			t.Helper()
			c := connect(t, at)
			defer c.Close(t.Context())
			err := c.QueryRow(t.Context(), "SELECT bytes FROM sluice._files WHERE digest = $1", digest).Scan(&b)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				t.Fatal(err)
			}
			return b
		},
		Rows: func(t *testing.T, table string) []map[string]string {
			return read(t, at, "sluice", strings.ReplaceAll(table, `"`, `""`))
		},
		Erase: func(t *testing.T) { exec(t, at, "DROP SCHEMA sluice CASCADE") },
		Squat: func(t *testing.T, table string) {
			exec(t, at, `CREATE SCHEMA IF NOT EXISTS sluice; CREATE TABLE sluice."`+table+`" (mine int)`)
		},
	}
}

func TestSuite(t *testing.T) { destinationtest.Run(t, place) }

func TestKill(t *testing.T) { destinationtest.Kill(t, place(t), destinationtest.Kills(50)) }

// connect is a connection of another program.
func connect(t testing.TB, at string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func exec(t testing.TB, at, sql string) {
	t.Helper()
	c := connect(t, at)
	defer c.Close(context.Background())
	if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// one is the only value of a query, as text.
func one(t testing.TB, at, sql string) (text string) {
	t.Helper()
	c := connect(t, at)
	defer c.Close(context.Background())
	if err := c.QueryRow(context.Background(), "SELECT coalesce(("+sql+")::text, 'NULL')").Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// read is what a table has, as destinationtest.Place wants it.
func read(t testing.TB, at, schema, table string) (out []map[string]string) {
	t.Helper()
	c := connect(t, at)
	defer c.Close(context.Background())
	results, err := c.PgConn().Exec(context.Background(), `SET timezone = 'UTC'; SET datestyle = 'ISO'; SELECT * FROM "`+
		schema+`"."`+table+`"`).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := results[len(results)-1]
	for _, values := range last.Rows {
		row := map[string]string{}
		for i, f := range last.FieldDescriptions {
			if values[i] == nil {
				continue
			}
			text := string(values[i])
			switch f.DataTypeOID {
			case 16: // boolean
				text = map[string]string{"t": "true", "f": "false"}[text]
			case 1184: // timestamptz
				text = strings.Replace(strings.TrimSuffix(text, "+00"), " ", "T", 1)
				whole, part, _ := strings.Cut(text, ".")
				text = whole + "." + fmt.Sprintf("%-6s", part) + "Z"
				text = strings.ReplaceAll(text, " ", "0")
			}
			row[f.Name] = text
		}
		out = append(out, row)
	}
	return out
}

// with is a URL with a setting.
func with(t testing.TB, at string, settings ...string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(settings); i += 2 {
		q.Set(settings[i], settings[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}
