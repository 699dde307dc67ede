package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/search"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A world has a store with some connections, and their indexes.
type world struct {
	*testing.T
	store   store.Store
	indexes *search.Indexes
	dir     string
	n       int
}

func newWorld(t *testing.T) *world {
	st, err := badger.Open(t.TempDir(), badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, store: st, dir: filepath.Join(t.TempDir(), "search")}
	w.indexes = search.New(search.Options{Store: st, Dir: w.dir})
	t.Cleanup(func() {
		if err := errors.Join(w.indexes.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// collect commits records of one stream, in a run of its own. One without data is deleted.
func (w *world) collect(c store.ConnectionID, stream store.Stream, records ...string) {
	w.Helper()
	w.n++
	if _, err := w.store.Connection(w.Context(), c); errors.Is(err, store.ErrNotFound) {
		w.must(w.store.PutConnection(w.Context(), store.Connection{ID: c, CreatedAt: time.Unix(int64(1_700_000_000+w.n), 0)}))
	}
	run := store.Run{ID: store.RunID(fmt.Sprintf("run_%026d", w.n)), ConnectionID: c, Status: "active",
		StartedAt: time.Now()}
	lease, err := w.store.Acquire(w.Context(), run, "host", "boot", time.Hour)
	w.must(err)
	b := &store.Batch{Stream: stream}
	for _, d := range records {
		key, data, _ := strings.Cut(d, " ")
		change := store.Change{Key: []byte(key), Data: []byte(data), EmittedAt: time.Now().UnixMicro()}
		if data == "" {
			change.Op = store.Delete
		}
		b.Append(change)
	}
	now := time.Now()
	over := run
	over.Status, over.FinishedAt = "succeeded", &now
	r, err := w.store.Submit(w.Context(), &store.Commit{Lease: lease, Batches: []*store.Batch{b}, Run: &over, End: true,
		Events: []store.Event{{ID: store.EventID(fmt.Sprintf("evt_%016d", w.n)), Type: "run.completed", RunID: run.ID,
			ConnectionID: c, OccurredAt: now, Data: json.RawMessage(`{}`)}}})
	w.must(err)
	<-r.Done()
	_, err = r.Result()
	w.must(err)
}

func (w *world) search(q host.SearchQuery) host.SearchResult {
	w.Helper()
	r, err := w.indexes.Search(w.Context(), q)
	if err != nil {
		w.Fatalf("%+v: %v", q, err)
	}
	return r
}

// finds compares the keys of what is found, in their order.
func (w *world) finds(words string, keys ...string) {
	w.Helper()
	got := []string{}
	for _, h := range w.search(host.SearchQuery{Words: words}).Hits {
		got = append(got, h.Key)
	}
	if diff := cmp.Diff(append([]string{}, keys...), got); diff != "" {
		w.Errorf("%s: %s", words, diff)
	}
}

// marked are the snippets of the best hit, with brackets around what was found.
func (w *world) marked(words string) (out []string) {
	w.Helper()
	r := w.search(host.SearchQuery{Words: words})
	if len(r.Hits) == 0 {
		return nil
	}
	for _, s := range r.Hits[0].Snippets {
		line := s.Field + ": "
		for _, p := range s.Parts {
			if p.Match {
				line += "[" + p.Text + "]"
			} else {
				line += p.Text
			}
		}
		out = append(out, line)
	}
	return out
}

// TestSearch: words, phrases, beginnings and what must not be there; changes, deletions and
// what was erased; and an index that is damaged or gone.
func TestSearch(t *testing.T) {
	w := newWorld(t)
	w.collect("mail", "messages", `a {"subject":"The invoice of May","from":{"name":"Ann"},"size":12345}`,
		`b {"subject":"Lunch","tags":["the invoices","May I"]}`,
		`c {"subject":"invoice invoice invoice"}`)
	w.collect("git", "commits", `1 {"message":"invoice: rounds down"}`)
	w.finds("lunch", "b")
	w.finds("INVOICE -ann -rounds", "c")
	w.finds(`"of may"`, "a")
	w.finds(`"may of"`)
	w.finds("invoices", "b")
	w.finds("invo* tag*")
	w.finds("invo* may -ann", "b")
	w.finds("12345") // a number is no text
	w.finds("ann invoice", "a")
	if got := w.search(host.SearchQuery{Words: "invoice"}).Hits; len(got) != 3 || got[0].Key != "c" && got[0].Key != "1" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"subject: The [invoice] of [May]"}, w.marked("invoice may")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"tags[0]: the [invoices]", "tags[1]: [May] I"}, w.marked("invoi* may -ann")); diff != "" {
		t.Error(diff)
	}
	r := w.search(host.SearchQuery{Words: "invoice", ConnectionID: "mail", Stream: "messages", Limit: 1})
	if !r.More || len(r.Hits) != 1 ||
		r.Hits[0].Links != (host.HitLinks{Record: "/v1/connections/mail/streams/messages/records/c",
			Page: "/ui/record?connection=mail&key=c&stream=messages"}) {
		t.Errorf("%+v", r)
	}
	if r := w.search(host.SearchQuery{Words: "invoice", Only: []store.ConnectionID{"git"}}); len(r.Hits) != 1 ||
		r.Hits[0].ConnectionID != "git" {
		t.Errorf("%+v", r)
	}
	if r := w.search(host.SearchQuery{Words: "invoice", ConnectionID: "mail",
		Only: []store.ConnectionID{"git"}}); len(r.Hits) != 0 {
		t.Errorf("%+v", r)
	}

	w.collect("mail", "messages", `a {"subject":"A bill"}`, `b `)
	w.finds("bill", "a")
	w.finds("lunch")
	w.finds("may")
	w.finds("invoice -rounds", "c")
	again := func(why string) {
		t.Helper()
		w.finds("bill", "a")
		if t.Failed() {
			t.Fatal(why)
		}
	}
	file := filepath.Join(w.dir, "mail.db")
	w.must(os.RemoveAll(w.dir))
	again("the directory is gone")
	w.must(w.indexes.Close())
	w.indexes = search.New(search.Options{Store: w.store, Dir: w.dir})
	again("opened again")
	w.must(w.indexes.Close())
	w.must(os.WriteFile(file, []byte(strings.Repeat("garbage ", 1000)), 0o600))
	w.indexes = search.New(search.Options{Store: w.store, Dir: w.dir})
	again("garbage")
	w.must(w.indexes.Close())
	content, err := os.ReadFile(file)
	w.must(err)
	for i := 4096; i < len(content); i++ {
		content[i] = 0xa5
	}
	w.must(os.WriteFile(file, content, 0o600))
	w.indexes = search.New(search.Options{Store: w.store, Dir: w.dir})
	again("damaged within")
	w.must(w.indexes.Close())
	w.must(os.Remove(file))
	w.must(os.MkdirAll(filepath.Join(file, "x"), 0o700))
	w.indexes = search.New(search.Options{Store: w.store, Dir: w.dir})
	again("a directory")

	w.must(w.store.DeleteConnection(t.Context(), "mail", true))
	w.must(w.indexes.Forget("mail"))
	w.finds("bill")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the index of an erased connection: %v", err)
	}
	w.collect("mail", "messages", `z {"subject":"another bill"}`) // made again under its name
	w.finds("bill", "z")
}

// TestLanguages: case, accents and spellings do not matter, and writing without spaces is
// found by any part of it.
func TestLanguages(t *testing.T) {
	w := newWorld(t)
	texts := map[string]string{
		"zh": "我们明天去北京大学开会。", "ja": "東京都の天気は晴れです。データを保存した",
		"th": "ฉันชอบกินข้าวผัดที่ร้านอาหาร",
		"ko": "서울에서 회의가 열렸다", "de": "Die Straße nach Zürich; Größe: 5 Öfen",
		"ar": "اَلسَّلَامُ عَلَيْكُمْ يا أحمد في المدرسة",
		"fr": "Un élève naïf mangé à Noël, cœur", "el": "Ο Σίσυφος", "ru": "Ёлка в лесу",
		"hi": "हिन्दी में लिखा", "pieces": "Cafe\u0301 cre\u0300me",
		"wide": "ＡＢＣ１２３ ｶﾀｶﾅ", "tr": "Iğdır ılık", "vi": "Tiếng Việt rất đẹp",
	}
	var records []string
	for key, text := range texts {
		data, err := json.Marshal(map[string]string{"text": text})
		w.must(err)
		records = append(records, key+" "+string(data))
	}
	w.collect("all", "texts", records...)
	for words, key := range map[string]string{
		"北京": "zh", "北京大学": "zh", "学": "zh", "会": "zh", `"去北京"`: "zh", "天気": "ja",
		"東京都": "ja", "データ": "ja", "保存": "ja", "た": "ja", "ข้าวผัด": "th",
		"ร้านอาหาร": "th", "กิน": "th", "서울": "ko", "회의": "ko", "열렸": "ko",
		"strasse": "de", "STRASSE": "de", "straße": "de", "zurich": "de", "größe": "de", "grosse": "de", "ofen": "de",
		"öf*": "", "öfe*": "de", "السلام": "ar", "احمد": "ar", "المدرسه": "ar", "eleve": "fr",
		"ÉLÈVE": "fr", "noel": "fr", "coeur": "fr", "naif": "fr", "ΣΊΣΥΦΟΣ": "el", "σισυφοσ": "el",
		"елка": "ru", "ЛЕСУ": "ru", "हिन्दी": "hi", "café": "pieces", "creme": "pieces",
		"abc123": "wide", "カタカナ": "wide", "igdir": "tr", "viet": "vi", "đẹp": "vi", "dep": "vi",
	} {
		if key == "" {
			w.finds(words)
			continue
		}
		w.finds(words, key)
		if m := w.marked(words); len(m) != 1 || !strings.Contains(m[0], "[") {
			t.Errorf("%s: %q", words, m)
		}
	}
	for words, want := range map[string]string{
		"北京大学": "text: 我们明天去[北京大学]开会。", "会": "text: 我们明天去北京大学开[会]。",
		"学":       "text: 我们明天去北京大[学]开会。",
		"strasse": "text: Die [Straße] nach Zürich; Größe: 5 Öfen",
	} {
		if diff := cmp.Diff([]string{want}, w.marked(words)); diff != "" {
			t.Error(diff)
		}
	}
	w.finds("京北")
	w.finds("大会")
}

// TestHostile: no text that is looked for is an error of SQLite's, and none of a record gets
// out as it is.
func TestHostile(t *testing.T) {
	w := newWorld(t)
	w.collect("c", "s", `a {"te\u202ext<b>":"<script>alert(1)</script> \u0000\u001b[31mred\u202e needle \"quoted\" AND or NOT near"}`,
		`long {"x":"`+strings.Repeat("a", 300)+strings.Repeat(" filler", 20_000)+` tail"}`,
		`deep {"x":`+strings.Repeat("[", 60)+`"bottom"`+strings.Repeat("]", 60)+`}`)
	for _, words := range []string{
		`"`, `""`, `"needle`, `needle"`, `needle AND`, `NOT needle`, `needle OR (`, `needle)`, `col:needle`, `^needle`,
		`NEAR(needle red, 2)`, `needle + red`, `{a b}: needle`, `*`, `-`, `--`, `- needle`, `needle'; DROP TABLE w1`,
		"needle\x00", "needle\xff", `"needle"*`, `"needle" *`, `nee**`, `-"`, `needle -""`, `'needle'`, `\needle\`, `🦀`,
		`needle 🦀`, "\u202e", `w1`, `rowid:1`, strings.Repeat(`"`, 999), strings.Repeat("a", 1000),
		strings.Repeat("(", 1000), strings.Repeat("-a ", 9) + "needle", strings.Repeat("京", 33),
	} {
		_, err := w.indexes.Search(t.Context(), host.SearchQuery{Words: words})
		var r *host.Refusal
		if err != nil && (!errors.As(err, &r) || r.Code != "validation_error") {
			t.Errorf("%q: %v", words, err)
		}
	}
	for _, words := range []string{"", " ", "-needle", "🦀", strings.Repeat("a ", 21), strings.Repeat("a", 1001),
		`"` + strings.Repeat("a ", 33) + `"`} {
		if _, err := w.indexes.Search(t.Context(), host.SearchQuery{Words: words}); err == nil {
			t.Errorf("%q was looked for", words)
		}
	}
	for _, limit := range []int{-1, 101} {
		if _, err := w.indexes.Search(t.Context(), host.SearchQuery{Words: "x", Limit: limit}); err == nil {
			t.Errorf("limit %d", limit)
		}
	}
	w.finds("needle", "a")
	w.finds(strings.Repeat("a", 64), "long") // of a word so many characters count
	w.finds("tail", "long")
	w.finds("bottom", "deep")
	if diff := cmp.Diff([]string{`text<b>: <script>alert(1)</script> [31mred [needle] "quoted" AND or NOT near`},
		w.marked("needle")); diff != "" {
		t.Error(diff)
	}
	if m := w.marked("tail"); len(m) != 1 || len(m[0]) > 300 {
		t.Errorf("%q", m)
	}
}

// TestFrequent: words that are in more records than are counted are found, the newest first,
// and rarer words beside them rank.
func TestFrequent(t *testing.T) {
	w := newWorld(t)
	var records []string
	for i := range 12_000 {
		text := "every"
		if i%5000 == 7 {
			text += " rare"
		}
		if i == 5007 {
			text = "rare rare rare every"
		}
		if i < 11_500 {
			text += " most"
		}
		records = append(records, fmt.Sprintf(`k%05d {"t":"%s %d"}`, i, text, i))
	}
	for len(records) > 0 {
		n := min(len(records), 3000)
		w.collect("c", "s", records[:n]...)
		records = records[n:]
	}
	r := w.search(host.SearchQuery{Words: "every", Limit: 2})
	if !r.More || len(r.Hits) != 2 || r.Hits[0].Key != "k11999" {
		t.Errorf("%+v", r)
	}
	w.finds("every rare -most")
	w.finds("every rare most", "k05007", "k10007", "k00007")
	if r := w.search(host.SearchQuery{Words: "every -most", Limit: 1}); len(r.Hits) != 1 || r.Hits[0].Key != "k11999" {
		t.Errorf("%+v", r)
	}
}

// TestBound: indexes take no more of the disk than they may; those go that nobody used for
// longest, and what is too large says what to do.
func TestBound(t *testing.T) {
	w := newWorld(t)
	for _, c := range []store.ConnectionID{"a", "b", "c"} {
		w.collect(c, "s", `1 {"t":"word"}`)
	}
	var long strings.Builder
	for n := range 50_000 {
		fmt.Fprintf(&long, "w%d ", n)
	}
	w.collect("large", "s", `1 {"t":"word `+long.String()+`"}`)
	w.must(w.indexes.Close())
	w.indexes = search.New(search.Options{Store: w.store, Dir: w.dir, Most: 400_000, Setting: "copies.search_bytes"})
	for _, c := range []string{"a", "b", "c", "a", "b", "c", "a"} {
		r, err := w.indexes.Search(t.Context(), host.SearchQuery{Words: "word", ConnectionID: c})
		if err != nil || len(r.Hits) != 1 {
			t.Errorf("%s: %+v %v", c, r, err)
		}
	}
	sum := int64(0)
	entries, err := os.ReadDir(w.dir)
	w.must(err)
	for _, e := range entries {
		info, err := e.Info()
		w.must(err)
		sum += info.Size()
	}
	if len(entries) == 0 || sum > 400_000 {
		t.Errorf("%d bytes in %d files", sum, len(entries))
	}
	for range 2 {
		_, err := w.indexes.Search(t.Context(), host.SearchQuery{Words: "word", ConnectionID: "large"})
		var r *host.Refusal
		if !errors.As(err, &r) || r.Code != "search_limit" || !strings.Contains(r.Message, "copies.search_bytes") {
			t.Errorf("%v", err)
		}
	}
}

// A counted store counts the records that are looked for by key, and calls before, if it is set, ahead of each read of
// one record by version.
type counted struct {
	search.Store
	byKey  atomic.Int64
	before func()
}

func (c *counted) Record(ctx context.Context, id store.ConnectionID, stream store.Stream,
	key string) (store.Record, error) {
	c.byKey.Add(1)
	return c.Store.Record(ctx, id, stream, key)
}

func (c *counted) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if q.Limit == 1 && c.before != nil {
		c.before()
	}
	return c.Store.Records(ctx, q)
}

// TestByVersion: hits are read by version, and by key when they have changed since they were found.
func TestByVersion(t *testing.T) {
	w := newWorld(t)
	c := &counted{Store: w.store}
	w.must(w.indexes.Close())
	w.indexes = search.New(search.Options{Store: c, Dir: w.dir})
	w.collect("c", "s", `a {"t":"one word"}`, `b {"t":"one word"}`, `c {"t":"other"}`)
	w.collect("c", "s", `b {"t":"one word more"}`)
	w.finds("word", "a", "b")
	if n := c.byKey.Load(); n != 0 {
		t.Errorf("%d of two hits were looked for by key", n)
	}
	c.before = sync.OnceFunc(func() { w.collect("c", "s", `a {"t":"one word anew"}`, `b`) })
	r := w.search(host.SearchQuery{Words: "word"})
	if n := c.byKey.Load(); n != 2 || len(r.Hits) != 1 || r.Hits[0].Key != "a" ||
		!strings.Contains(fmt.Sprint(r.Hits[0].Snippets), "anew") {
		t.Errorf("%d were looked for by key, %+v", n, r)
	}
}
