//go:build unix

package postgres_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

const secret = "hush/hush"

func TestCheck(t *testing.T) {
	data := t.TempDir()
	key := filepath.Join(data, "key.pem")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ url, want string }{
		{"postgres://sam:hush%2Fhush@db.example.org:5433/out", "postgres://sam@db.example.org:5433/out"},
		{"postgres://sam@localhost/out?password=hush%2Fhush&sslpassword=hush%2Fhush&schema=mine",
			"postgres://sam@localhost/out?schema=mine"},
		{"postgres://sam:hush%2Fhush@/out?host=/run/postgresql", "postgres://sam@/out?host=/run/postgresql"},
		{"postgres://sam:hush%2Fhush@db.example.org/out?sslmode=disable",
			"postgres://sam@db.example.org/out?sslmode=disable"},
		{"postgres://sam:hush%2Fhush@a.example,b.example/out", "postgres://sam@a.example,b.example/out"},
		{"postgres://sam:hush/hush@db.example.org/out", "error: want postgres://USER:PASSWORD@HOST"},
		{"postgres://sam:hush%2Fhush@db.example.org:no/out", "error: want postgres://USER:PASSWORD@HOST"},
		{"postgres://sam:hush%2Fhush@db.example.org", "error: the URL names no database"},
		{"postgres://sam:hush%2Fhush@/out", "error: the URL names no host"},
		{"postgres://sam:hush%2Fhush@h/out?service=x", `error: "service" is no setting`},
		{"postgres://sam:hush%2Fhush@h/out?servicefile=x", `error: "servicefile" is no setting`},
		{"postgres://sam:hush%2Fhush@h/out?passfile=x", `error: "passfile" is no setting`},
		{"postgres://sam:hush%2Fhush@h/out?hush%2Fhush", `error: "hush/hush" is no setting`},
		{"postgres://sam:hush%2Fhush@h/out?host=other", "error: the URL has host twice"},
		{"postgres://sam:hush%2Fhush@h/out?password=hush%2Fhush", "error: the URL has password twice"},
		{"postgres://sam:hush%2Fhush@h/out?schema=a&schema=b", "error: schema is set twice"},
		{"postgres://sam:hush%2Fhush@h/out?schema=pg_mine", "error: schema wants a name"},
		{"postgres://sam:hush%2Fhush@h/out?schema=" + strings.Repeat("s", 64), "error: schema wants a name"},
		{"postgres://sam:hush%2Fhush@h/out?sslmode=some", "error: sslmode is one of"},
		{"postgres://sam:hush%2Fhush@h:99999/out", "error: the port is no number"},
		{"postgres://sam:hush%2Fhush@h/out?sslrootcert=/nowhere/ca.pem", "error: the files of sslrootcert"},
		{"postgres://sam:hush%2Fhush@h/out?sslkey=" + key + "&sslcert=" + key, "error: the files of sslrootcert"},
		{"postgres://sam:hush%2Fhush@h/out?sslrootcert=" + key, "error: "},
		{"postgres://sam:hush%2Fhush@h/out#hush%2Fhush", "error: want postgres://USER:PASSWORD@HOST"},
	} {
		got, err := postgres.Kind{}.Check(tt.url, data)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, tt.want) || !strings.HasPrefix(tt.want, "error: ") && got != tt.want {
			t.Errorf("%s\n is %s\nwant %s", tt.url, got, tt.want)
		}
		if strings.Contains(got, secret) && !strings.Contains(tt.want, secret) || strings.Contains(got, "hush%2Fhush") {
			t.Errorf("%s shows the password", got)
		}
	}
}

// open opens a destination that is there.
func open(t *testing.T, at string) destination.Sink {
	t.Helper()
	sink, err := postgres.Kind{}.Open(t.Context(), at, owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

// refused checks that an error says what is wanted, and no password.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
		return
	}
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) ||
		strings.Contains(text, server.Shared(t).Password) {
		t.Errorf("%s has the password", text)
	}
}

func TestOpen(t *testing.T) {
	s := server.Shared(t)
	database := strings.TrimPrefix(parsed(t, server.New(t)).Path, "/")
	s.Exec(t, "postgres", `CREATE ROLE lesser LOGIN PASSWORD '`+secret+
		`'; CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	t.Cleanup(func() { s.Exec(t, "postgres", "DROP DATABASE latin") })
	try := func(at, want string) {
		t.Helper()
		sink, err := postgres.Kind{}.Open(t.Context(), at, owner)
		if err == nil {
			_ = sink.Close()
		}
		refused(t, err, want)
	}
	lesser := s.URL("lesser", secret, database)
	try(s.URL("lesser", "wrong", database), "the server refused the password (password authentication failed for user")
	try(s.URL("nobody", secret, database), "the server refused the password")
	try(s.URL("lesser", secret, "nowhere"), `the server has no such database (database "nowhere" does not exist)`)
	try(s.URL(server.User, s.Password, "latin"), "the database has the encoding LATIN1")
	try(newProxy(t, s).url(t, lesser)+"&connect_timeout=5&schema=x", "may not make the schema x")
	try(strings.Replace(newProxy(t, s).url(t, lesser), "sslmode=disable", "sslmode=require", 1),
		"has no TLS; if the way to it is safe, add sslmode=disable")
	try(with(t, lesser, "host", "127.0.0.1", "port", "1"), "no server listens at 127.0.0.1:1")
	try(with(t, lesser, "host", "nowhere.invalid", "sslmode", "disable"), "nowhere.invalid")

	try(lesser, `the user lesser may not make the schema sluice; an administrator of the database `+database+
		` can run: CREATE SCHEMA "sluice" AUTHORIZATION "lesser"`)
	s.Exec(t, database, `CREATE SCHEMA "sluice"`)
	try(lesser, `can run: GRANT USAGE, CREATE ON SCHEMA "sluice" TO "lesser"`)
	s.Exec(t, database, `GRANT USAGE, CREATE ON SCHEMA "sluice" TO "lesser"`)
	if err := open(t, lesser).Apply(t.Context(), batch(destination.Current, `{"n":1}`)); err != nil {
		t.Error(err)
	}
	s.Exec(t, database, `CREATE SCHEMA mine; CREATE TABLE mine._sluice_meta (x int)`)
	if _, err := (postgres.Kind{}).Open(t.Context(), with(t, lesser, "schema", "mine"), owner); !errors.Is(err,
		destination.ErrForeign) {
		t.Errorf("a foreign meta table: %v", err)
	}
	s.Exec(t, database, `DROP SCHEMA sluice, mine CASCADE; DROP ROLE lesser`)
}

// A user that loses rights in the middle is told the statement that gives them back, and after that nothing is missing.
func TestLostRights(t *testing.T) {
	s := server.Shared(t)
	database := strings.TrimPrefix(parsed(t, server.New(t)).Path, "/")
	s.Exec(t, "postgres", `CREATE ROLE loser LOGIN PASSWORD '`+secret+`'`)
	s.Exec(t, database, `CREATE SCHEMA sluice; GRANT USAGE, CREATE ON SCHEMA sluice TO loser; REVOKE ALL ON DATABASE `+
		quoted(database)+` FROM public; GRANT CONNECT, TEMPORARY ON DATABASE `+quoted(database)+` TO loser`)
	t.Cleanup(func() { s.Exec(t, database, `DROP SCHEMA sluice CASCADE; DROP OWNED BY loser; DROP ROLE loser`) })
	at, src := s.URL("loser", secret, database), &source{}
	put := func() { src.put(fmt.Sprint("k", len(src.changes)), fmt.Sprintf(`{"n":1,"f%d":2}`, len(src.changes))) }
	put()
	if err := src.bring(t.Context(), open(t, at), destination.Current); err != nil {
		t.Fatal(err)
	}
	for _, lose := range []string{
		`ALTER TABLE sluice.mail_items OWNER TO CURRENT_USER`,
		`ALTER TABLE sluice.mail_items OWNER TO CURRENT_USER; GRANT ALL ON sluice.mail_items TO loser`, // but ALTER TABLE
		`REVOKE ALL ON SCHEMA sluice FROM loser`,
		`REVOKE ALL ON DATABASE ` + quoted(database) + ` FROM loser`,
		`ALTER TABLE sluice._sluice_meta OWNER TO CURRENT_USER`,
	} {
		s.Exec(t, database, lose)
		put()
		sink, err := postgres.Kind{}.Open(t.Context(), at, owner)
		if err == nil {
			err = src.bring(t.Context(), sink, destination.Current)
			_ = sink.Close()
		}
		if err == nil {
			t.Errorf("after %s it goes on", lose)
			continue
		}
		_, statement, ok := strings.Cut(err.Error(), "; an administrator of the database "+database+" can run: ")
		if !ok {
			t.Fatalf("after %s: %v", lose, err)
		}
		s.Exec(t, database, statement)
		if err := src.bring(t.Context(), open(t, at), destination.Current); err != nil {
			t.Errorf("after %s, and %s: %v", lose, statement, err)
		}
	}
	if got := one(t, at, "SELECT count(*) FROM sluice.mail_items"); got != fmt.Sprint(len(src.changes)) {
		t.Errorf("there are %s rows of %d", got, len(src.changes))
	}
}

func quoted(name string) string { return `"` + name + `"` }

// pretender is a server that answers what clients say first, and then is silent.
func pretender(t *testing.T, answer func(c net.Conn, said []byte)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			said := make([]byte, 1000)
			n, _ := c.Read(said)
			answer(c, said[:n])
			_ = c.Close()
		}
	})
	return "postgres://sam:hush%2Fhush@" + l.Addr().String() + "/out"
}

// TestPretenders: servers that are not what the URL asks for get no password.
func TestPretenders(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	t.Cleanup(web.Close)
	withTLS := pretender(t, func(c net.Conn, _ []byte) {
		_, _ = c.Write([]byte("S"))
		_ = tls.Server(c, web.TLS).Handshake() // fails
	})
	_, err := postgres.Kind{}.Open(t.Context(), withTLS+"?sslmode=verify-full", owner)
	refused(t, err, "is not one to trust; sslrootcert in the URL names the authority")
	var heard []byte
	curious := pretender(t, func(c net.Conn, _ []byte) {
		_, _ = c.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3}) // the password in clear text
		heard, _ = io.ReadAll(c)
	})
	_, err = postgres.Kind{}.Open(t.Context(), curious+"?sslmode=disable&require_auth=!password", owner)
	refused(t, err, "wants the password as it is, and the connection has no TLS")
	if strings.Contains(string(heard), secret) {
		t.Error("the password was sent")
	}
	noServer := pretender(t, func(c net.Conn, _ []byte) { _, _ = c.Write([]byte("HTTP/1.0 400 Bad Request\r\n\r\n")) })
	_, err = postgres.Kind{}.Open(t.Context(), noServer+"?sslmode=disable", owner)
	refused(t, err, "the server at 127.0.0.1:")
	silent := pretender(t, func(c net.Conn, _ []byte) { _, _ = io.ReadAll(c) })
	_, err = postgres.Kind{}.Open(t.Context(), silent+"?sslmode=disable&connect_timeout=1", owner)
	refused(t, err, "does not answer in time")
}

func parsed(t *testing.T, at string) *url.URL {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestSchema: the URL chooses the schema, and one server has several destinations.
func TestSchema(t *testing.T) {
	at := server.New(t)
	odd := with(t, at, "schema", `my "odd" one's`)
	for _, u := range []string{at, odd} {
		if err := random(40).bring(t.Context(), open(t, u), destination.Current); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := read(t, at, "sluice", "mail_items"), read(t, at, `my ""odd"" one's`, "mail_items"); len(a) == 0 ||
		len(a) != len(b) {
		t.Errorf("%d and %d rows", len(a), len(b))
	}
	s := open(t, odd)
	for range 2 { // the table of streams stays, with what looks at it
		if err := s.Describe(t.Context(),
			[]destination.Described{{StreamID: stream, Connector: "it's", Table: "mail_items", Partial: true,
				SyncedAt: since}}); err != nil {
			t.Fatal(err)
		}
		exec(t, at, `CREATE OR REPLACE VIEW fresh AS SELECT connector FROM "my ""odd"" one's"._sluice_streams`)
	}
	if got := one(t, at, "SELECT connector FROM fresh"); got != "it's" {
		t.Errorf("got %q", got)
	}
}

// TestSaid: what the server says becomes a sentence.
func TestSaid(t *testing.T) {
	for _, tt := range []struct{ code, want string }{
		{"53100", "the disk of the server is full"}, {"53200", "the server has no memory left"},
		{"57014", "the server took too long and was stopped"}, {"25006", "the server takes no changes, as a standby does"},
		{"40001", "another transaction was in the way"}, {"55P03", "another program holds the table or the fence locked"},
		{"99999", "the server refused"},
	} {
		at := server.New(t)
		sink := open(t, at)
		if err := random(3).bring(t.Context(), sink, destination.Current); err != nil {
			t.Fatal(err)
		}
		exec(t, at, fmt.Sprintf(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it is %s' USING ERRCODE = '%s'; END $$;
			CREATE TRIGGER t BEFORE INSERT ON sluice.mail_items FOR EACH ROW EXECUTE FUNCTION fail()`, "\x1b[31m"+server.Shared(t).Password, tt.code))
		refused(t, random(9).bring(t.Context(), sink, destination.Current), tt.want+" (it is [31m…)")
		exec(t, at, "DROP TRIGGER t ON sluice.mail_items")
		if err := random(20).bring(t.Context(), sink, destination.Current); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		compare(t, at, destination.Current, 20)
	}
}

// TestMeddled: somebody changes what is ours.
func TestMeddled(t *testing.T) {
	at := server.New(t)
	sink := open(t, at)
	src := &source{}
	next := func(data string) error {
		src.put(fmt.Sprint("k", len(src.changes)), data)
		return src.bring(t.Context(), sink, destination.Current)
	}
	if err := next(`{"n":1}`); err != nil {
		t.Fatal(err)
	}
	exec(t, at, "CREATE VIEW looks AS SELECT n FROM sluice.mail_items")
	refused(t, next(`{"n":"text"}`),
		`a view uses a column whose type has to change; drop the view first (cannot alter type of a column used by a view or rule: rule _RETURN on view public.looks depends on column "n")`)
	refused(t, sink.Clear(t.Context(), stream),
		`something else in the database depends on the table; drop that first (cannot drop table sluice.mail_items because other objects depend on it: view public.looks`)
	exec(t, at, "DROP VIEW looks; ALTER TABLE sluice.mail_items DROP COLUMN _rest")
	refused(t, next(`{"n":"text"}`), "somebody changed the table; rebuild the destination")
	exec(t, at, "DROP TABLE sluice.mail_items")
	refused(t, next(`{"n":"text"}`), "somebody changed the table; rebuild the destination")
	if err := sink.Clear(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	if err := next(`{"n":1}`); err != nil {
		t.Fatal(err)
	}
	if n := len(read(t, at, "sluice", "mail_items")); n != len(src.changes) {
		t.Errorf("%d rows of %d", n, len(src.changes))
	}
	exec(t, at, "UPDATE sluice._sluice_meta SET value = 'x' WHERE name LIKE 'stream:%'")
	if _, err := sink.Holdings(t.Context()); !errors.Is(err, destination.ErrForeign) {
		t.Errorf("a meta table that was written to: %v", err)
	}
}
