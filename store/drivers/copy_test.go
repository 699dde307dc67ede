//go:build unix

package drivers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
	"github.com/sluicehost/sluice/store/storetest"
	"github.com/sluicehost/sluice/tests/postgres"
)

type movable interface {
	store.Store
	store.Imager
}

func open(t *testing.T, address string) movable {
	t.Helper()
	s, err := drivers.Open(address, drivers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(movable)
}

// places makes addresses of empty stores.
func places(t *testing.T) map[string]func() string {
	return map[string]func() string{
		"badger":   func() string { return "badger:" + t.TempDir() },
		"postgres": func() string { return postgres.New(t) + "&durability=weak" },
	}
}

func drawn(t *testing.T, s movable) []byte {
	t.Helper()
	image, err := s.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	var b bytes.Buffer
	if err := store.WriteItems(t.Context(), &b, image); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is copied is what there was, and goes on as that does.
func TestCopy(t *testing.T) {
	for from, source := range places(t) {
		s := open(t, source())
		storetest.Populate(t, s)
		before := drawn(t, s)
		for to, target := range places(t) {
			t.Run(from+" to "+to, func(t *testing.T) {
				address := target()
				c := open(t, address)
				var last store.CopyProgress
				done, err := store.CopyStore(t.Context(), s, c, func(p store.CopyProgress) { last = p })
				if err != nil {
					t.Fatal(err)
				}
				if last.Stage != store.CopyCompare || done.Records != last.Of.Records || done.Events != last.Of.Events ||
					done.Files != last.Of.Files || done.Records == 0 {
					t.Errorf("%+v: %+v", last, done)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				c = open(t, address)
				if got := drawn(t, c); !bytes.Equal(got, before) {
					t.Errorf("the copy has %d bytes of items, the source %d", len(got), len(before))
				}
				if again, err := store.CopyStore(t.Context(), s, c, func(store.CopyProgress) {}); err != nil || again != done {
					t.Errorf("copied again: %+v, %v", again, err)
				}
				storetest.GoOn(t, c)
				if _, err := store.CopyStore(t.Context(), s, c, func(store.CopyProgress) {}); !errors.Is(err, store.ErrNotEmpty) {
					t.Errorf("copied to a store in use: %v", err)
				}
			})
		}
		if got := drawn(t, s); !bytes.Equal(got, before) {
			t.Errorf("the source of %s changed", from)
		}
	}
}

var errKilled = errors.New("killed")

// killing is an image that ends at an item.
type killing struct {
	store.Image
	left *int
}

func (k killing) Items(ctx context.Context, kind store.ItemKind, after []byte, fn func(store.Item) error) error {
	return k.Image.Items(ctx, kind, after, func(i store.Item) error {
		if *k.left--; *k.left == 0 {
			return errKilled
		}
		return fn(i)
	})
}

// dying is a store whose copy ends after so many items.
type dying struct {
	movable
	after int
}

func (d dying) Image(ctx context.Context) (store.Image, error) {
	i, err := d.movable.Image(ctx)
	return killing{i, &d.after}, err
}

// A copy that ended anywhere goes on there, unless the source changed.
func TestCopyGoesOn(t *testing.T) {
	s := open(t, "memory:")
	storetest.Populate(t, s)
	before := drawn(t, s)
	for name, target := range places(t) {
		t.Run(name, func(t *testing.T) {
			address := target()
			ended, resumed := 0, false
			for after := 1; ; after += 1501 {
				c := open(t, address)
				_, err := store.CopyStore(t.Context(), dying{s, after}, c,
					func(p store.CopyProgress) { resumed = resumed || p.Resumed })
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if err == nil {
					break
				}
				if ended++; !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
			}
			c := open(t, address)
			if got := drawn(t, c); !bytes.Equal(got, before) || ended < 5 || !resumed {
				t.Errorf("after %d ends, resumed: %v, the copy has %d bytes of items, the source %d", ended, resumed,
					len(got), len(before))
			}

			address = target()
			c = open(t, address)
			if _, err := store.CopyStore(t.Context(), dying{s, 9000}, c,
				func(store.CopyProgress) {}); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			other := open(t, "memory:")
			storetest.Populate(t, other)
			if err := other.Write(t.Context(), store.Write{Kind: store.Keys, ID: "new", Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			var refused *store.OtherCopyError
			if _, err := store.CopyStore(t.Context(), other, c, func(store.CopyProgress) {}); !errors.As(err, &refused) {
				t.Errorf("another source: %v", err)
			}
			if err := errors.Join(c.Close(), drivers.Empty(address)); err != nil {
				t.Fatal(err)
			}
			c = open(t, address)
			if _, err := store.CopyStore(t.Context(), other, c, func(store.CopyProgress) {}); err != nil ||
				!bytes.Equal(drawn(t, c), drawn(t, other)) {
				t.Errorf("emptied and begun anew: %v", err)
			}
		})
	}
}

// suicidal is an image that ends its process at an item.
type suicidal struct {
	store.Image
	left *int
}

func (k suicidal) Items(ctx context.Context, kind store.ItemKind, after []byte, fn func(store.Item) error) error {
	return k.Image.Items(ctx, kind, after, func(i store.Item) error {
		if *k.left--; *k.left == 0 {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		}
		return fn(i)
	})
}

type doomed struct {
	movable
	after *int
}

func (d doomed) Image(ctx context.Context) (store.Image, error) {
	i, err := d.movable.Image(ctx)
	return suicidal{i, d.after}, err
}

// TestKilledCopy kills the process of a copy again and again, each time a little later: while it
// surveys, copies, verifies or compares.
func TestKilledCopy(t *testing.T) {
	if child := os.Getenv("SLUICE_COPY"); child != "" {
		words := strings.Fields(child)
		after, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CopyStore(t.Context(), doomed{open(t, words[0]), &after}, open(t, words[1]),
			func(store.CopyProgress) {}); err != nil {
			t.Fatal(err)
		}
		return
	}
	source := "badger:" + t.TempDir()
	s := open(t, source)
	storetest.Populate(t, s)
	before := drawn(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, target := range places(t) {
		t.Run(name, func(t *testing.T) {
			address := target()
			kills := 0
			for after := 40; ; after += 5003 {
				cmd := exec.Command(os.Args[0], "-test.run=^TestKilledCopy$")
				cmd.Env = append(os.Environ(), fmt.Sprintf("SLUICE_COPY=%s %s %d", source, address, after))
				out, err := cmd.CombinedOutput()
				if err == nil {
					break
				}
				if kills++; !strings.Contains(err.Error(), "killed") {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if got := drawn(t, open(t, address)); !bytes.Equal(got, before) || kills < 3 {
				t.Errorf("after %d kills the copy has %d bytes of items, the source %d", kills, len(got), len(before))
			}
		})
	}
}

// What is loaded is not trusted: where a bit is turned over or the end is missing, it is refused, or
// what comes of it is told from what was there.
func TestHostileItems(t *testing.T) {
	s := open(t, "memory:")
	storetest.Populate(t, s)
	good := drawn(t, s)
	loaded := func(b []byte) ([]byte, error) {
		c, err := drivers.Open("memory:", drivers.Options{})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := store.LoadItems(t.Context(), bytes.NewReader(b), c.(movable)); err != nil {
			return nil, err
		}
		if err := c.Verify(t.Context()); err != nil {
			return nil, err
		}
		return drawn(t, c.(movable)), nil
	}
	if got, err := loaded(good); err != nil || !bytes.Equal(got, good) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(good), err)
	}
	refused := 0
	for at := 0; at < len(good); at += len(good) / 40 {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if got, err := loaded(bad); err != nil {
			refused++
		} else if bytes.Equal(got, good) {
			t.Errorf("byte %d was turned over, and nothing came of it", at)
		}
		if _, err := loaded(good[:at]); err == nil {
			t.Errorf("it was cut at byte %d", at)
		}
	}
	if refused < 10 {
		t.Errorf("only %d were refused", refused)
	}
	if _, err := loaded(append(bytes.Clone(good), 0)); err == nil {
		t.Error("something follows the end")
	}
}
