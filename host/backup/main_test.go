//go:build unix

package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// The test binary is also the process that unpacks, and a victim.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == backup.Command {
		os.Exit(backup.Main(os.Args[2:], os.Stdin, os.Stdout, opener))
	}
	if os.Getenv("SLUICE_CHILD") == "backup" {
		childBackup()
		return
	}
	if os.Getenv("SLUICE_CHILD") == "restore" {
		childRestore()
		return
	}
	os.Exit(m.Run())
}

var opener = backup.Opener{
	Open: func(dir string) (backup.Store, error) {
		s, err := badger.Open(dir, badger.Options{Small: true})
		if err == nil && s.Damage() != nil {
			err = errors.Join(s.Damage(), s.Close())
		}
		return s, err
	},
	Room: func(string, int64) error { return nil },
}

// canary is a secret that must be found nowhere.
const canary = "canary-5d1f88c0-2b7e"

// data is a data directory with something of everything in it.
func data(t testing.TB, records int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := fillData(dir, records); err != nil {
		t.Fatal(err)
	}
	return dir
}

func fillData(dir string, records int) error {
	s, err := badger.Open(dir, badger.Options{Small: true})
	if err != nil {
		return err
	}
	err = fillStore(context.Background(), s, records)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	v, err := vault.Open(dir)
	if err != nil {
		return err
	}
	for _, name := range []string{"token", "password"} {
		if err := v.Set("mail", name, []byte(canary)); err != nil {
			return err
		}
	}
	return keepModule(dir, []byte("\x00asm and so on"))
}

func keepModule(dir string, wasm []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, "modules"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "modules", digest(wasm)+".wasm"), wasm, 0o400)
}

// fillStore makes two runs, one of them over.
func fillStore(ctx context.Context, s store.Store, records int) error {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if err := s.PutConnector(ctx,
		store.Connector{ID: "https://example.org/mail", Name: "mail", Version: "1.0.0", Manifest: []byte(`{}`),
			InstalledAt: at}); err != nil {
		return err
	}
	for i, name := range []string{"mail", "shop"} {
		c := store.Connection{ID: store.ConnectionID(name), ConnectorID: "https://example.org/mail",
			Enabled: true, CreatedAt: at}
		if err := s.PutConnection(ctx, c); err != nil {
			return err
		}
		l, err := s.Acquire(ctx,
			store.Run{ID: store.RunID(fmt.Sprintf("run_%026d", i)), ConnectionID: c.ID, Status: "active", StartedAt: at},
			"host", "boot", time.Hour)
		if err != nil {
			return err
		}
		if err := fillRun(ctx, s, l, records, i == 0); err != nil {
			return err
		}
	}
	return nil
}

func fillRun(ctx context.Context, s store.Store, l store.Lease, records int, end bool) error {
	event := func(kind string) []store.Event {
		return []store.Event{{ID: "evt_1", Type: kind, RunID: l.RunID, ConnectionID: l.ConnectionID, Data: []byte(`{"n":1}`)}}
	}
	commits := []*store.Commit{}
	for _, stream := range []store.Stream{"messages", "folders"} {
		b := new(store.Batch)
		b.Reset(stream)
		for i := range records {
			k := fmt.Appendf(nil, "k%05d", i%(records*3/4+1)) // a quarter comes twice
			if i%7 == 6 {
				b.Append(store.Change{Op: store.Delete, Key: k})
				continue
			}
			b.Append(store.Change{Key: k, Data: fmt.Appendf(nil, `{"stream":%q,"n":%d}`, stream, i)})
			if b.Len() == 500 {
				commits = append(commits, &store.Commit{Lease: l, Batches: []*store.Batch{b}, Events: event("run.batch_ingested")})
				b = new(store.Batch)
				b.Reset(stream)
			}
		}
		commits = append(commits, &store.Commit{Lease: l, Batches: []*store.Batch{b}, Events: event("run.batch_ingested")})
	}
	commits = append(commits,
		&store.Commit{Lease: l, Advance: []store.State{{Stream: "messages", Cursor: []byte(`{"at":7}`)}},
			Events: event("run.state_advanced")},
		&store.Commit{Lease: l, Staged: []store.State{{Stream: "folders", Cursor: []byte(`8`)}},
			Gaps: []store.DetailGap{{ID: "gap_1", Stream: "messages", Ref: "k1", Status: "pending"}}},
		&store.Commit{Lease: l, Ask: &store.Interaction{ID: "int_1", RunID: l.RunID, Kind: "otp", Message: "code?"},
			Events: event("run.interaction_opened")},
	)
	if end {
		commits = append(commits,
			&store.Commit{Lease: l, End: true, Run: &store.Run{ID: l.RunID, ConnectionID: l.ConnectionID, Status: "succeeded"},
				Events: event("run.completed")})
	}
	for _, c := range commits {
		r, err := s.Submit(ctx, c)
		if err == nil {
			_, err = r.Result()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plan prepares a backup of a data directory, and closes it with the test.
func plan(t testing.TB, dir string) *backup.Plan {
	t.Helper()
	p, done, err := preparePlan(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return p
}

func preparePlan(dir string) (*backup.Plan, func(), error) {
	s, err := opener.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	image, err := s.Image(context.Background())
	if err != nil {
		return nil, nil, err
	}
	v, err := vault.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	secrets, err := v.Sealed(func() error { return nil })
	if err != nil {
		return nil, nil, err
	}
	p, err := backup.Prepare(context.Background(), backup.Source{
		Image: image, Secrets: secrets, Modules: filepath.Join(dir, "modules"), Version: "test",
		Installation: "host_0", Now: time.Now(),
	})
	return p, func() { image.Close(); s.Close() }, err
}

// archive is the plain text of a backup.
func archive(t testing.TB, p *backup.Plan) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != p.Size() {
		t.Fatalf("%d bytes were written, %d announced", b.Len(), p.Size())
	}
	return b.Bytes()
}

// sealed is the archive for a fresh identity.
func sealed(t testing.TB, p *backup.Plan) ([]byte, *age.X25519Identity) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "b.age")
	if _, err := backup.Create(t.Context(), p,
		backup.Order{Path: path, To: backup.Recipients{id.Recipient()}, Drill: drill(t)}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b, id
}

// drill unpacks in this process.
func drill(t testing.TB) func(context.Context, io.Reader) error {
	return func(ctx context.Context, r io.Reader) error {
		_, _, err := backup.Unpack(ctx, r, t.TempDir(), opener)
		return err
	}
}

// unpackHere is UnpackApart in this process.
func unpackHere(ctx context.Context, r io.Reader, dir string, _ *os.File) (backup.Summary, string, error) {
	m, digest, err := backup.Unpack(ctx, r, dir, opener)
	return m.Summary(), digest, err
}

// restore restores a backup and does nothing more.
func restore(ctx context.Context, file, dir string, ids backup.Identities,
	unpack backup.Unpacker) (s backup.Summary, err error) {
	description, err := backup.Restoration{File: file, Dir: dir, Identities: ids, Unpack: unpack,
		Finish: func(_ string, s backup.Summary) (json.RawMessage, error) {
			return json.Marshal(s)
		}}.Restore(ctx)
	if err == nil {
		err = json.Unmarshal(description, &s)
	}
	return s, err
}

// times is a number from the environment, for campaigns.
func times(t testing.TB, name string, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return usual
	}
	return n
}
