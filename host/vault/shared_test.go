package vault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"

	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// documents is a database in memory that an attacker can write.
type documents struct {
	mu  sync.Mutex
	all map[string]store.Document
}

func newDocuments() *documents { return &documents{all: map[string]store.Document{}} }

func (d *documents) Document(_ context.Context, kind store.Kind, id string) (store.Document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.all[string(kind)+" "+id]
	if !ok {
		return doc, store.ErrNotFound
	}
	doc.Data = bytes.Clone(doc.Data)
	return doc, nil
}

func (d *documents) Write(_ context.Context, writes ...store.Write) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range writes {
		if have := d.all[string(w.Kind)+" "+w.ID].Revision; w.If != nil && *w.If != have {
			return &store.ConflictError{Kind: w.Kind, ID: w.ID, Revision: have}
		}
	}
	for _, w := range writes {
		key := string(w.Kind) + " " + w.ID
		if w.Data == nil {
			delete(d.all, key)
			continue
		}
		d.all[key] = store.Document{Kind: w.Kind, ID: w.ID, Revision: d.all[key].Revision + 1, Data: bytes.Clone(w.Data)}
	}
	return nil
}

// image and restore are what somebody does who has the database.
func (d *documents) image() map[string]store.Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.all)
}

func (d *documents) restore(all map[string]store.Document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = maps.Clone(all)
}

// put replaces a document, which may have another revision than it had.
func (d *documents) put(key string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc := d.all[key]
	doc.Data, doc.Revision = data, doc.Revision+1
	d.all[key] = doc
}

const (
	registerKey = "vault register"
	tokenKey    = "secret mail/token"
)

// member is a host with a data directory of its own.
func member(t *testing.T, docs vault.Documents, host string) (*vault.Shared, string) {
	t.Helper()
	dir := t.TempDir()
	return vault.NewShared(open(t, dir), docs, host), dir
}

// again is a host after a restart.
func again(t *testing.T, docs vault.Documents, dir, host string) *vault.Shared {
	t.Helper()
	return vault.NewShared(open(t, dir), docs, host)
}

func value(k vault.Keeper) (string, error) {
	s, err := k.Get("mail", "token")
	out := ""
	s.Use(func(b []byte) { out = string(b) })
	return out, err
}

func has(t *testing.T, k vault.Keeper, want string) {
	t.Helper()
	if got, err := value(k); got != want || err != nil {
		t.Errorf("the secret is %q, %v; want %q", got, err, want)
	}
}

func admit(t *testing.T, at, of *vault.Shared, host string) {
	t.Helper()
	refused(t, of.Join(t.Context()), vault.ErrNotAdmitted)
	code, err := of.Code()
	must(t, err)
	must(t, at.Admit(t.Context(), host, code))
	must(t, of.Join(t.Context()))
}

// two are a host that made the vault and one that it admitted.
func two(t *testing.T) (docs *documents, a, b *vault.Shared, dirB string) {
	docs = newDocuments()
	a, _ = member(t, docs, "host_a")
	must(t, a.Join(t.Context()))
	must(t, a.Set("mail", "token", []byte("one")))
	b, dirB = member(t, docs, "host_b")
	admit(t, a, b, "host_b")
	has(t, b, "one")
	return docs, a, b, dirB
}

func TestShared(t *testing.T) {
	docs, a, b, dir := two(t)
	must(t, b.Set("mail", "token", []byte("two")))
	has(t, a, "two")
	refused(t, a.Add("mail", "token", []byte("three")), vault.ErrExists)
	refused(t, a.Set("mail", "TOKEN", []byte("three")), vault.ErrInvalid)
	must(t, a.Add("shop", "key", []byte("k")))
	all, err := again(t, docs, dir, "host_b").List()
	if err != nil || len(all) != 2 || all[0].Name != "token" || all[1].Connection != "shop" || all[1].Set.IsZero() {
		t.Errorf("listed %v, %v", all, err)
	}
	must(t, b.Remove("mail", "token"))
	_, err = value(a)
	refused(t, err, vault.ErrNotFound)
	for key, d := range docs.image() {
		if bytes.Contains(d.Data, []byte("one")) || strings.Contains(key, "one") || key == tokenKey {
			t.Errorf("%s is %s", key, d.Data)
		}
	}
}

// Before it is admitted a host has nothing and keeps nothing, and says what is to be done.
func TestNotAdmitted(t *testing.T) {
	docs := newDocuments()
	a, _ := member(t, docs, "host_a")
	must(t, a.Join(t.Context()))
	must(t, a.Set("mail", "token", []byte("one")))
	b, _ := member(t, docs, "host_b")
	refused(t, b.Join(t.Context()), vault.ErrNotAdmitted)
	_, err := value(b)
	refused(t, err, vault.ErrNotAdmitted)
	if err == nil || !strings.Contains(err.Error(), "sluice hosts admit host_b") {
		t.Errorf("it says %v", err)
	}
	refused(t, b.Set("mail", "token", []byte("two")), vault.ErrNotAdmitted)
	refused(t, a.Admit(t.Context(), "host_c", "AAAA"), vault.ErrCode)
	refused(t, a.Admit(t.Context(), "host_b", "AAAA-BBBB-CCCC-DDDD-EEEE-FFFF"), vault.ErrCode)
	code, err := b.Code()
	must(t, err)
	must(t, a.Admit(t.Context(), "host_b", strings.ToLower(strings.ReplaceAll(code, "-", " "))))
	has(t, b, "one")
	must(t, b.Join(t.Context()))
}

// Somebody who writes the database puts a key of theirs in the place of a host's.
func TestSwappedKey(t *testing.T) {
	docs := newDocuments()
	a, _ := member(t, docs, "host_a")
	must(t, a.Join(t.Context()))
	must(t, a.Set("mail", "token", []byte("one")))
	b, _ := member(t, docs, "host_b")
	refused(t, b.Join(t.Context()), vault.ErrNotAdmitted)
	evil, _ := member(t, docs, "host_b") // the same name and another key
	refused(t, evil.Join(t.Context()), vault.ErrNotAdmitted)
	code, err := b.Code()
	must(t, err)
	before := docs.image()[registerKey]
	refused(t, a.Admit(t.Context(), "host_b", code), vault.ErrCode)
	if after := docs.image()[registerKey]; !bytes.Equal(before.Data, after.Data) {
		t.Error("the register was changed")
	}
	// A proof of the right key under another name, or with another key beside it, is none.
	refused(t, b.Join(t.Context()), vault.ErrNotAdmitted)
	right := docs.image()["vault request/host_b"].Data
	docs.put("vault request/host_c", right)
	refused(t, a.Admit(t.Context(), "host_c", code), vault.ErrCode)
	id, err := age.GenerateX25519Identity()
	must(t, err)
	var q map[string]any
	must(t, json.Unmarshal(right, &q))
	q["key"] = id.Recipient().String()
	swapped, err := json.Marshal(q)
	must(t, err)
	docs.put("vault request/host_b", swapped)
	refused(t, a.Admit(t.Context(), "host_b", code), vault.ErrCode)
	_, err = value(evil)
	refused(t, err, vault.ErrNotAdmitted)
}

// Somebody who writes the database admits a new host to a vault of theirs, so that secrets which
// are set there would be sealed to them.
func TestForgedAdmission(t *testing.T) {
	docs := newDocuments()
	b, _ := member(t, docs, "host_b")
	evil, _ := member(t, docs, "host_a")
	must(t, evil.Join(t.Context())) // before the host comes, and with its own code
	refused(t, b.Join(t.Context()), vault.ErrNotAdmitted)
	right := docs.image()["vault request/host_b"].Data
	var q struct{ Key string }
	must(t, json.Unmarshal(right, &q))
	must(t, evil.AdmitKey(t.Context(), "host_b", q.Key, "AAAABBBBCCCCDDDDEEEEFFFF"))
	refused(t, b.Join(t.Context()), vault.ErrNotAdmitted)
	refused(t, b.Set("mail", "token", []byte("typed by the owner")), vault.ErrNotAdmitted)
	// A host that has a vault takes no other.
	docs2, a, _, _ := two(t)
	for _, key := range []string{registerKey, tokenKey} {
		docs2.put(key, docs.image()[registerKey].Data)
	}
	if err := a.Set("mail", "token", []byte("typed by the owner")); err == nil {
		t.Error("a host took another vault")
	}
}

// However the register is bent, nothing is read or written under it.
func TestBentRegister(t *testing.T) {
	docs, a, b, _ := two(t)
	good := docs.image()
	data := good[registerKey].Data
	var s struct{ Register, MAC []byte }
	must(t, json.Unmarshal(data, &s))
	bend := map[string][]byte{"nothing": nil, "no JSON": []byte("{"), "empty": []byte("{}"),
		"large": bytes.Repeat([]byte(" "), 17<<20)}
	for i := 0; i < len(s.Register); i += 7 {
		r := bytes.Clone(s.Register)
		r[i] ^= 1
		bend[fmt.Sprint("bit ", i)], _ = json.Marshal(struct{ Register, MAC []byte }{r, s.MAC})
	}
	bend["no code"], _ = json.Marshal(struct{ Register []byte }{s.Register})
	for what, data := range bend {
		docs.put(registerKey, data)
		for _, h := range []*vault.Shared{a, b} {
			if got, err := value(h); err == nil {
				t.Errorf("%s: read %q", what, got)
			}
			if err := h.Set("mail", "token", []byte("new")); err == nil {
				t.Errorf("%s: set", what)
			}
		}
	}
	docs.restore(good)
	has(t, a, "one")
}

// Somebody who writes the database brings back what it held before: one secret, or all of it.
func TestRolledBack(t *testing.T) {
	docs, a, b, dir := two(t)
	before := docs.image()
	must(t, a.Set("mail", "token", []byte("two")))
	has(t, b, "two")
	now := docs.image()
	docs.put(tokenKey, before[tokenKey].Data)
	_, err := value(b)
	refused(t, err, vault.ErrDamaged)
	docs.restore(now)
	has(t, b, "two")
	docs.put(tokenKey, nil)
	_, err = value(b)
	refused(t, err, vault.ErrDamaged)
	for what, image := range map[string]map[string]store.Document{"older": before, "gone": {}} {
		docs.restore(image)
		for _, h := range []*vault.Shared{a, b, again(t, docs, dir, "host_b")} {
			_, err = value(h)
			refused(t, err, vault.ErrRolledBack)
			refused(t, h.Set("mail", "token", []byte("three")), vault.ErrRolledBack)
			if err := h.Join(t.Context()); !errors.Is(err, vault.ErrRolledBack) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	// The owner restored the database: all go on with what is there.
	docs.restore(before)
	must(t, b.Accept(t.Context()))
	has(t, b, "one")
	has(t, a, "one")
	must(t, a.Set("mail", "token", []byte("three")))
	has(t, b, "three")
	docs.restore(map[string]store.Document{})
	must(t, a.Accept(t.Context()))
	must(t, a.Set("mail", "token", []byte("four")))
	has(t, a, "four")
	_, err = value(b)
	refused(t, err, vault.ErrNotAdmitted)
}

// A host that was removed reads nothing that is written afterwards, and cannot bring itself back.
func TestExpelled(t *testing.T) {
	docs, a, b, dir := two(t)
	c, _ := member(t, docs, "host_c")
	admit(t, a, c, "host_c")
	had := docs.image()
	keys := kept(t, dir)
	refused(t, b.Expel(t.Context(), "host_b"), vault.ErrInvalid)
	refused(t, a.Expel(t.Context(), "host_x"), store.ErrNotFound)
	must(t, a.Expel(t.Context(), "host_b"))
	has(t, a, "one")
	has(t, c, "one")
	must(t, c.Set("shop", "key", []byte("later")))
	_, err := value(b)
	refused(t, err, vault.ErrNotAdmitted)
	for key, d := range docs.image() {
		if !strings.HasPrefix(key, "secret ") {
			continue
		}
		var file []byte
		must(t, json.Unmarshal(d.Data, &file))
		if _, err := age.Decrypt(bytes.NewReader(file), keys...); err == nil {
			t.Errorf("a host that was removed can open %s", key)
		}
	}
	// With the database and the keys that it had, it goes back to when it was admitted.
	docs.restore(had)
	must(t, again(t, docs, dir, "host_b").Set("mail", "token", []byte("evil")))
	for _, h := range []*vault.Shared{a, c} {
		_, err = value(h)
		refused(t, err, vault.ErrRolledBack)
	}
	// An older database is accepted without the host that was removed since.
	must(t, a.Accept(t.Context()))
	has(t, a, "evil") // which it could write then
	_, err = value(b)
	refused(t, err, vault.ErrNotAdmitted)
	admit(t, a, c, "host_c")
	has(t, c, "evil")
	admit(t, a, b, "host_b") // the owner may take it back
	has(t, b, "evil")
}

// kept are the keys of the vault that a host has on its disk.
func kept(t *testing.T, dir string) (ids []age.Identity) {
	t.Helper()
	v, err := open(t, dir).Get(vault.Host, "shared_vault")
	must(t, err)
	var saw struct{ Keys map[string]string }
	v.Use(func(b []byte) { must(t, json.Unmarshal(b, &saw)) })
	for _, k := range saw.Keys {
		id, err := age.ParseX25519Identity(k)
		must(t, err)
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		t.Fatal("it has no keys")
	}
	return ids
}

func TestSharedRotate(t *testing.T) {
	docs, a, b, _ := two(t)
	for range 2 {
		for range 40 { // more than are remembered
			must(t, b.Rotate(t.Context()))
		}
		has(t, a, "one")
	}
	for i := range 60 { // more than one transaction
		must(t, a.Set("c"+fmt.Sprint(i), "token", []byte(fmt.Sprint(i))))
	}
	old := docs.image()
	must(t, a.Rotate(t.Context()))
	for key, d := range docs.image() {
		if strings.HasPrefix(key, "secret ") && bytes.Equal(d.Data, old[key].Data) {
			t.Errorf("%s was not encrypted anew", key)
		}
	}
	has(t, b, "one")
	docs.put("secret c7/token", []byte(`"AAAA"`))
	if err := a.Rotate(t.Context()); err == nil || !strings.Contains(err.Error(), "token of c7") {
		t.Errorf("a damaged secret: %v", err)
	}
	has(t, b, "one")
}

// Hosts that set secrets at once lose none, and of those who make the vault one is the first.
func TestSharedHammer(t *testing.T) {
	docs := newDocuments()
	var hosts []*vault.Shared
	var wg sync.WaitGroup
	first := make([]error, 4)
	for i := range first {
		h, _ := member(t, docs, fmt.Sprint("host_", i))
		hosts = append(hosts, h)
		wg.Go(func() { first[i] = h.Join(t.Context()) })
	}
	wg.Wait()
	var at *vault.Shared
	for i, err := range first {
		if err == nil && at != nil {
			t.Fatal("two made the vault")
		}
		if err == nil {
			at = hosts[i]
		}
	}
	for i, h := range hosts {
		if h != at {
			admit(t, at, h, fmt.Sprint("host_", i))
		}
	}
	for i, h := range hosts {
		wg.Go(func() {
			for n := range 10 {
				if err := h.Set(fmt.Sprint("c", i), fmt.Sprint("n", n), []byte("x")); err != nil {
					t.Error(err)
				}
				if err := h.Set("mail", "token", []byte(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				if _, err := value(h); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := at.List()
	if len(all) != 41 || err != nil {
		t.Errorf("%d secrets, %v", len(all), err)
	}
}

// What a host kept for itself goes into the vault, and comes back where it is alone again.
func TestTakeIn(t *testing.T) {
	docs := newDocuments()
	dir := t.TempDir()
	own := open(t, dir)
	set(t, own, "mail", "token", "one")
	set(t, own, vault.Host, "whk_1", "signs")
	a := again(t, docs, dir, "host_a")
	must(t, a.Join(t.Context()))
	left, err := a.TakeIn()
	if len(left) != 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
	has(t, a, "one")
	if _, err := get(own, "mail", "token"); !errors.Is(err, vault.ErrNotFound) {
		t.Errorf("it is beside the store too: %v", err)
	}
	set(t, own, "mail", "token", "another")
	if left, err = a.TakeIn(); len(left) != 1 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
	has(t, a, "one")
	want(t, own, "mail", "token", "another")
	must(t, a.GiveBack(t.Context()))
	want(t, own, "mail", "token", "one")
	want(t, own, vault.Host, "whk_1", "signs")
	if all, err := own.List(); len(all) != 2 || err != nil || len(docs.image()) != 0 {
		t.Errorf("%v, %v and %d documents", all, err, len(docs.image()))
	}
}

func TestSigned(t *testing.T) {
	_, a, b, _ := two(t)
	code, err := a.Sign(t.Context(), "one", []byte("text"))
	must(t, err)
	for what, right := range map[string]bool{"one text": true, "two text": false, "one other": false} {
		purpose, text, _ := strings.Cut(what, " ")
		if ok, err := b.Signed(t.Context(), purpose, []byte(text), code); ok != right || err != nil {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	must(t, a.Rotate(t.Context()))
	if ok, _ := b.Signed(t.Context(), "one", []byte("text"), code); ok {
		t.Error("a code of a key that was replaced counts")
	}
}

// unsteady is a database that fails when it is asked for the register a second time.
type unsteady struct {
	*documents
	registers int
}

func (u *unsteady) Document(ctx context.Context, kind store.Kind, id string) (store.Document, error) {
	if kind == store.Vault && id == "register" {
		if u.registers++; u.registers > 1 {
			return store.Document{}, errors.New("the connection broke")
		}
	}
	return u.documents.Document(ctx, kind, id)
}

// A secret is another than the register lists, and the database is gone when that is looked at again.
func TestLostWhileChanged(t *testing.T) {
	docs, _, _, dir := two(t)
	docs.put(tokenKey, []byte(`"AAAA"`))
	if _, err := value(again(t, &unsteady{documents: docs}, dir, "host_b")); err == nil ||
		!strings.Contains(err.Error(), "the connection broke") {
		t.Errorf("got %v", err)
	}
}
