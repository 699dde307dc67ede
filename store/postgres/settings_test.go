//go:build unix

package postgres_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// refused opens a URL that cannot be opened, and wants words in the error but no password.
func refused(t *testing.T, url string, want ...string) {
	t.Helper()
	s, err := postgres.OpenURL(url, postgres.Options{})
	if err == nil {
		_ = s.Close()
		t.Fatalf("opened; want %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v; want %q", err, w)
		}
	}
	if strings.Contains(err.Error(), server.Shared(t).Password) || strings.Contains(err.Error(), "secret-word") {
		t.Errorf("the password is in %v", err)
	}
}

func TestRefused(t *testing.T) {
	pg := server.Shared(t)
	url := pg.Database(t)
	admin := connect(t, url)
	refused(t, url, "fsync = off, full_page_writes = off", "durability=weak")
	refused(t, pg.URL(server.User, "secret-word", "test_1")+weak, "refused the password")
	refused(t, pg.URL(server.User, pg.Password, "nothing")+weak, "no such database")
	refused(t, "postgres://u:secret-word@localhost:1/d", "no database server listens at localhost:1")
	refused(t, url+weak+"&schema=pg_x", "schema wants a name")
	refused(t, url+weak+"&pool=1", "parameter pool: want 2 to 64")
	refused(t, url+weak+"&options=-csearch_path%3Dx", "is no parameter of a store")
	refused(t, "postgres://u:secret-word@db.example.org/d?sslmode=require", "verify-full")

	run(t, admin, "create schema strange; create table strange.t (x int)")
	refused(t, url+weak+"&schema=strange", "has tables that are not of a store")
	run(t, admin, "create role nobody_much login password 'secret-word'")
	refused(t, strings.Replace(pg.URL("nobody_much", "secret-word", "X"), "/X", "/"+admin.Config().Database, 1)+
		weak, "lacks a right",
		`CREATE SCHEMA "sluice_store" AUTHORIZATION "nobody_much"`)

	if err := open(t, url+weak).Close(); err != nil {
		t.Fatal(err)
	}
	run(t, admin, "insert into sluice_store.sluice_schema (version) values (99)")
	refused(t, url+weak, "version 99", "upgrade Sluice")

	p := pg.Proxy(t)
	p.Forge()
	refused(t, p.Through(t, pg.Database(t))+weak, "a pooler stands between")
}

func TestWeaknesses(t *testing.T) {
	s := opened(t, server.New(t)+weak, postgres.Options{})
	all, err := store.Weaknesses(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, w := range all {
		if w.Remedy == "" {
			t.Errorf("%s: no remedy", w.Detail)
		}
		text += w.Detail + "\n"
	}
	for _, want := range []string{"fsync = off", "full_page_writes = off", "no data checksums"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	safe := server.Start(t)
	if err := open(t, safe.Database(t)).Close(); err != nil {
		t.Errorf("a server with its defaults: %v", err)
	}
}
