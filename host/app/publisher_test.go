package app_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// A release is a module with its signature's file beside it.
type release struct {
	t    *testing.T
	path string
}

// published writes a module that does nothing, under an id and a version; title
// makes it another module. It is unsigned.
func published(t *testing.T, id, version, title string) release {
	t.Helper()
	code := []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" +
		"\x05\x04\x01\x01\x01\x01" +
		"\x07\x13\x02\x06_start\x00\x00\x06memory\x02\x00" + "\x0a\x04\x01\x02\x00\x0b")
	manifest := fmt.Sprintf(`{"protocol_version": "0.1.0", "connector_id": %q, "version": %q, "display_name": %q, "streams": [{"name": "rows",
		"semantics": "append_only", "primary_key": ["id"], "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}]}`, id, version, title)
	wasm, err := sandbox.EmbedManifest(code, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	r := release{t, filepath.Join(t.TempDir(), "m.wasm")}
	r.write(r.path, wasm)
	return r
}

func (r release) write(path string, b []byte) {
	r.t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r release) wasm() []byte {
	r.t.Helper()
	b, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// signedBy signs what the file says it is.
func (r release) signedBy(h *app.Host, k signature.PrivateKey) release {
	r.t.Helper()
	l, err := h.Load(r.t.Context(), r.path, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return r.claimed(k, l.Claims())
}

// claimed signs the file as something.
func (r release) claimed(k signature.PrivateKey, c signature.Claims) release {
	r.t.Helper()
	text, err := signature.Sign(k, r.wasm(), c, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(r.path+signature.Suffix, text)
	return r
}

// edited changes the signature's text.
func (r release) edited(old, new string) release {
	r.t.Helper()
	text, err := os.ReadFile(r.path + signature.Suffix)
	if err != nil {
		r.t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(old)) {
		r.t.Fatalf("no %q in %s", old, text)
	}
	r.write(r.path+signature.Suffix, bytes.Replace(text, []byte(old), []byte(new), 1))
	return r
}

func install(h *app.Host, r release, o app.InstallOptions) (app.Installed, error) {
	l, err := h.Load(r.t.Context(), r.path, "")
	if err != nil {
		r.t.Fatal(err)
	}
	if o.Signature, err = app.ReadSignature(r.path, ""); err != nil {
		return app.Installed{}, err
	}
	return h.Install(r.t.Context(), l, o)
}

func mustInstall(t *testing.T, h *app.Host, r release, o app.InstallOptions) app.Installed {
	t.Helper()
	done, err := install(h, r, o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func openHost(t *testing.T) *app.Host {
	t.Helper()
	h, err := app.Open(t.Context(), app.Options{Store: "badger:" + t.TempDir(), Prespawn: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func newKey(t *testing.T) signature.PrivateKey {
	t.Helper()
	k, err := signature.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const id = "https://connectors.example/mailbox"

func yes(string) bool { return true }

// What somebody in the middle can put in the place of a release, once the publisher's key is
// pinned. Nothing of it is installed; what only the owner can judge is, with a flag and a
// second yes.
func TestTamper(t *testing.T) {
	h := openHost(t)
	publisher, thief := newKey(t), newKey(t)
	done := mustInstall(t, h, published(t, id, "1.2.0", "Mailbox").signedBy(h, publisher), app.InstallOptions{})
	if !done.Pinned || !done.FirstUse || done.Connector.Signer.Key != publisher.Public().String() {
		t.Fatalf("first use: %+v", done)
	}
	next := func() release { return published(t, id, "1.3.0", "Mailbox").signedBy(h, publisher) }
	older := published(t, id, "1.1.0", "Mailbox").signedBy(h, publisher)
	genuine := next()
	for _, c := range []struct {
		name    string
		release release
		options app.InstallOptions
		code    string
		says    string
		owners  bool // the owner may have it all the same
	}{
		{"module flipped", func() release {
			r := next()
			r.write(r.path, bytes.Replace(r.wasm(), []byte("Mailbox"), []byte("Mailboy"), 1))
			return r
		}(), app.InstallOptions{}, app.CodeSignatureInvalid, "is of another module", false},
		{"signature flipped", next().edited("\nRU", "\nRV"), app.InstallOptions{}, app.CodeSignatureInvalid,
			"is damaged", false},
		{"comment flipped", next().edited("version:1.3.0", "version:1.4.0"), app.InstallOptions{}, app.CodeSignatureInvalid,
			"does not match", false},
		{"key in the comment replaced", next().edited(publisher.Public().String(), thief.Public().String()),
			app.InstallOptions{}, app.CodeSignatureInvalid, "is by another key", false},
		{"signature of another release", func() release {
			r := published(t, id, "1.4.0", "Mailbox")
			text, err := os.ReadFile(genuine.path + signature.Suffix)
			if err != nil {
				t.Fatal(err)
			}
			r.write(r.path+signature.Suffix, text)
			return r
		}(), app.InstallOptions{}, app.CodeSignatureInvalid, "is of another module: of " + id + " 1.3.0", false},
		{"claims another version",
			published(t, id, "1.3.0", "Mailbox").claimed(publisher,
				signature.Claims{Connector: id, Version: "9", Digest: "sha256:0"}),
			app.InstallOptions{}, app.CodeSignatureInvalid, "is of another module", false},
		{"no key that was asked for", next(), app.InstallOptions{Key: thief.Public()}, app.CodeSignatureInvalid,
			"is by another key", false},
		{"no signature where a key was asked for", published(t, id, "1.3.0", "Mailbox"),
			app.InstallOptions{Key: publisher.Public()}, app.CodeSignatureRequired, "is unsigned", false},
		{"no signature where one is required", published(t, "other", "1", "Other"),
			app.InstallOptions{RequireSignature: true}, app.CodeSignatureRequired, "is unsigned", false},
		{"signature left out", published(t, id, "1.3.0", "Mailbox"), app.InstallOptions{}, "connector_invalid",
			"is unsigned, but key", true},
		{"signed again by another", published(t, id, "1.3.0", "Mailbox").signedBy(h, thief), app.InstallOptions{},
			"connector_invalid", "is pinned for it", true},
		{"genuine but older", older, app.InstallOptions{}, "connector_invalid", "1.1.0 is older", true},
		{"same version, another module", published(t, id, "1.2.0", "Mailbox again").signedBy(h, publisher),
			app.InstallOptions{}, "connector_invalid", "another module under the same version", true},
		{"an id that looks alike", published(t, "https://connectors.example/rnailbox", "1.3.0", "Mailbox").signedBy(h, thief),
			app.InstallOptions{}, "connector_invalid", "looks like the installed", true},
		{"another id with the same name",
			published(t, "https://elsewhere.example/mailbox", "1.3.0", "Mailbox").signedBy(h, thief), app.InstallOptions{},
			"connector_invalid", "would be called mailbox", true},
		{"older, and by another", published(t, id, "1.0.0", "Mailbox").signedBy(h, thief), app.InstallOptions{},
			"connector_invalid", "1.0.0 is older", true},
	} {
		before := listed(t, h)
		ways := []app.InstallOptions{{}, {Force: true}, {Confirm: yes},
			{Force: true, Confirm: func(string) bool { return false }}}
		if !c.owners {
			ways = append(ways, app.InstallOptions{Force: true, Confirm: yes})
		}
		for _, way := range ways {
			o := c.options
			o.Force, o.Confirm = way.Force, way.Confirm
			_, err := install(h, c.release, o)
			var refused *run.Refusal
			if !errors.As(err, &refused) || refused.Code != c.code || !strings.Contains(refused.Message, c.says) ||
				c.owners != errors.Is(err, app.ErrSuspicious) {
				t.Errorf("%s, force %v, confirm %v: %v", c.name, way.Force, way.Confirm != nil, err)
			}
		}
		if after := listed(t, h); after != before {
			t.Errorf("%s changed what is installed:\n%s\n%s", c.name, before, after)
		}
		if c.owners {
			asked := ""
			other := openHost(t)
			mustInstall(t, other, published(t, id, "1.2.0", "Mailbox").signedBy(other, publisher), app.InstallOptions{})
			mustInstall(t, other, c.release,
				app.InstallOptions{Force: true, Confirm: func(why string) bool { asked = why; return true }})
			if !strings.Contains(asked, c.says) {
				t.Errorf("%s: the owner was asked: %q", c.name, asked)
			}
		}
	}
	if done := mustInstall(t, h, genuine, app.InstallOptions{RequireSignature: true}); done.Pinned {
		t.Errorf("the publisher's next release pinned again: %+v", done)
	}
}

// listed is what is installed and pinned.
func listed(t *testing.T, h *app.Host) string {
	t.Helper()
	all, err := h.Store.Connectors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pins, err := h.Store.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range all {
		out = append(out, fmt.Sprint(c.ID, c.Version, c.Digest, c.Signer))
	}
	return fmt.Sprint(out, pins)
}

// A pin outlives its connector: uninstalling is no way around it, for another key, for none,
// and for a connector that looks like the one that was.
func TestPinStays(t *testing.T) {
	h := openHost(t)
	publisher, thief := newKey(t), newKey(t)
	mustInstall(t, h, published(t, id, "1.2.0", "Mailbox").signedBy(h, publisher), app.InstallOptions{})
	if err := app.ServiceOf(h).UninstallConnector(t.Context(), "mailbox", ""); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]release{
		"another key": published(t, id, "1.3.0", "Mailbox").signedBy(h, thief),
		"no key":      published(t, id, "1.3.0", "Mailbox"),
		"look-alike":  published(t, "https://connectors.example/mai1box", "1.3.0", "Mailbox").signedBy(h, thief),
		"same name":   published(t, "mailbox", "1.3.0", "Mailbox").signedBy(h, thief),
	} {
		if _, err := install(h, r, app.InstallOptions{}); !errors.Is(err, app.ErrSuspicious) {
			t.Errorf("%s after uninstalling: %v", name, err)
		}
	}
	done := mustInstall(t, h, published(t, id, "1.3.0", "Mailbox").signedBy(h, publisher), app.InstallOptions{})
	if done.Pinned {
		t.Error("installing again pinned again")
	}
}

// The owner may move a pin; an unsigned module that is let in does not.
func TestPinMoves(t *testing.T) {
	h := openHost(t)
	first, second := newKey(t), newKey(t)
	named := mustInstall(t, h, published(t, id, "1.0.0", "Mailbox").signedBy(h, first),
		app.InstallOptions{Key: first.Public()})
	if !named.Pinned || named.FirstUse {
		t.Errorf("a key that was named: %+v", named)
	}
	force := app.InstallOptions{Force: true, Confirm: yes}
	if done := mustInstall(t, h, published(t, id, "1.1.0", "Mailbox"), force); done.Connector.Signer != nil ||
		done.Pinned {
		t.Errorf("unsigned: %+v", done)
	}
	if _, err := install(h, published(t, id, "1.2.0", "Mailbox"), app.InstallOptions{}); !errors.Is(err,
		app.ErrSuspicious) {
		t.Errorf("the second unsigned one: %v", err)
	}
	if done := mustInstall(t, h, published(t, id, "1.2.0", "Mailbox").signedBy(h, second), force); !done.Pinned ||
		done.FirstUse || done.Replaced.Key != first.Public().String() {
		t.Errorf("another key: %+v", done)
	}
	if _, err := install(h, published(t, id, "1.3.0", "Mailbox").signedBy(h, first), app.InstallOptions{}); !errors.Is(err,
		app.ErrSuspicious) {
		t.Errorf("the first key after the second: %v", err)
	}
}

// A key with the pinned one's id is another key: ids prove nothing.
func TestPinnedID(t *testing.T) {
	h := openHost(t)
	publisher, thief := newKey(t), newKey(t)
	mustInstall(t, h, published(t, id, "1.2.0", "Mailbox").signedBy(h, publisher), app.InstallOptions{})
	pin, ok, err := h.Pinned(t.Context(), id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	pin.Signer.KeyID = thief.Public().ID()
	if err := h.Store.PutPin(t.Context(), pin); err != nil {
		t.Fatal(err)
	}
	if _, err := install(h, published(t, id, "1.3.0", "Mailbox").signedBy(h, thief), app.InstallOptions{}); !errors.Is(err,
		app.ErrSuspicious) {
		t.Errorf("a key of the same id: %v", err)
	}
}

// A module that was changed on the disk is not run; it is set aside, and installing again
// repairs.
func TestQuarantine(t *testing.T) {
	h := openHost(t)
	r := published(t, "mailbox", "1.0.0", "Mailbox")
	done := mustInstall(t, h, r, app.InstallOptions{})
	path := filepath.Join(h.DataDir, "modules", strings.TrimPrefix(string(done.Connector.Digest), "sha256:")+".wasm")
	changed := bytes.Replace(r.wasm(), []byte("Mailbox"), []byte("Mailboy"), 1)
	for _, found := range [][]byte{changed, []byte("no module at all"), {}} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		r.write(path, found)
		_, err := h.Load(t.Context(), "mailbox", "")
		var refused *run.Refusal
		if !errors.As(err, &refused) || refused.Code != "connector_not_runnable" ||
			!strings.Contains(refused.Message, "was changed since it was installed") {
			t.Fatalf("%d other bytes: %v", len(found), err)
		}
		kept, err := filepath.Glob(filepath.Join(h.DataDir, "modules", "quarantine", "*.wasm"))
		if err != nil || len(kept) == 0 {
			t.Fatal(kept, err)
		}
		if b, err := os.ReadFile(kept[len(kept)-1]); err != nil || !bytes.Equal(b, found) {
			t.Errorf("in quarantine: %d bytes, %v", len(b), err)
		}
		if _, err := h.Load(t.Context(), "mailbox", ""); err == nil || !strings.Contains(err.Error(), "install it again") {
			t.Errorf("after it was set aside: %v", err)
		}
		mustInstall(t, h, r, app.InstallOptions{})
		l, err := h.Load(t.Context(), "mailbox", "")
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(l.Wasm); fmt.Sprintf("sha256:%x", sum) != string(done.Connector.Digest) {
			t.Error("other bytes were loaded")
		}
	}
}

// What is loaded is what was hashed: replacing the file afterwards changes nothing for who has
// it.
func TestSwapAfterLoad(t *testing.T) {
	h := openHost(t)
	r := published(t, "mailbox", "1.0.0", "Mailbox").signedBy(h, newKey(t))
	l, err := h.Load(t.Context(), r.path, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := app.ReadSignature(r.path, "")
	if err != nil {
		t.Fatal(err)
	}
	want := r.wasm()
	r.write(r.path, bytes.Replace(want, []byte("Mailbox"), []byte("Mailboy"), 1))
	if _, err := h.Install(t.Context(), l, app.InstallOptions{Signature: s}); err != nil {
		t.Fatal(err)
	}
	got, err := h.Load(t.Context(), "mailbox", "")
	if err != nil || !bytes.Equal(got.Wasm, want) {
		t.Errorf("installed other bytes than were verified: %v", err)
	}
}

// A listing that was changed names no file outside of the modules.
func TestListedDigest(t *testing.T) {
	h := openHost(t)
	outside := filepath.Join(h.DataDir, "outside.wasm")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []store.Digest{"sha256:../outside", "../outside", "",
		"sha256:../" + store.Digest(strings.Repeat("./", 27)) + "outside"} {
		c := store.Connector{ID: "mailbox", Name: "mailbox", Digest: digest, Manifest: []byte("{}")}
		if err := h.Store.PutConnector(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Load(t.Context(), "mailbox", ""); err == nil {
			t.Errorf("digest %q was loaded", digest)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside of the modules was moved: %v", err)
	}
}
