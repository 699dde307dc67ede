package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/scope"
)

// A page is a Markdown file below docs.
type page struct {
	headings map[string]bool // as they are written, without their marks
	anchors  map[string]int  // how often each is defined
	text     string          // without blocks of code
	blocks   []block
}

// A block is a fenced block of code.
type block struct {
	info string // what stands behind the fence
	text string
}

var (
	heading     = regexp.MustCompile(`^#{1,6} +(.+?) *$`)
	fence       = regexp.MustCompile("^ *```(.*)$")
	anchor      = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inline      = regexp.MustCompile("`[^`]*`")
	markdown    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug   = regexp.MustCompile(`[^\pL\pN_ -]`)
	citation    = regexp.MustCompile(`docs/(?:spec/)?[\w-]+\.(?:md|h)(?:#([\w-]+)|, "([^"]+)")?`)
	continued   = regexp.MustCompile(`^(?:,? and|,|;) "([^"]+)"`)
	citedPrefix = regexp.MustCompile(`^docs/(?:spec/)?[\w-]+\.(?:md|h)`)
)

// readPage reads a Markdown file; anchors of headings are GitHub's.
func readPage(t *testing.T, path string) page {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := page{headings: map[string]bool{}, anchors: map[string]int{}}
	var text strings.Builder
	var open *block
	seen := map[string]int{}
	for line := range strings.Lines(string(src)) {
		line = strings.TrimRight(line, "\n")
		if f := fence.FindStringSubmatch(line); f != nil {
			if open == nil {
				open = &block{info: strings.TrimSpace(f[1])}
			} else {
				p.blocks, open = append(p.blocks, *open), nil
			}
			continue
		}
		if open != nil {
			open.text += line + "\n"
			continue
		}
		text.WriteString(line + "\n")
		if h := heading.FindStringSubmatch(line); h != nil {
			title := strings.ReplaceAll(markdown.ReplaceAllString(anchor.ReplaceAllString(h[1], ""), "$1"), "`", "")
			p.headings[title] = true
			slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
			if n := seen[slug]; n > 0 {
				p.anchors[slug+"-"+strconv.Itoa(n)]++
			} else {
				p.anchors[slug]++
			}
			seen[slug]++
		}
		for _, a := range anchor.FindAllStringSubmatch(line, -1) {
			p.anchors[a[1]]++
		}
	}
	if open != nil {
		t.Errorf("%s: a block of code is not closed", path)
	}
	p.text = text.String()
	return p
}

// readDocs reads all pages below docs, by their path from the root of the tree.
func readDocs(t *testing.T) map[string]page {
	t.Helper()
	pages := map[string]page{}
	err := filepath.WalkDir("../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
			pages[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = readPage(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// Every link between pages leads to an existing file and anchor.
func TestDocumentLinks(t *testing.T) {
	pages := readDocs(t)
	for name, p := range pages {
		for a, n := range p.anchors {
			if n > 1 {
				t.Errorf("%s: the anchor %s is there %d times", name, a, n)
			}
		}
		for _, l := range link.FindAllStringSubmatch(inline.ReplaceAllString(p.text, ""), -1) {
			u, err := url.Parse(l[1])
			if err != nil {
				t.Errorf("%s: %s is no link: %v", name, l[1], err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			to := name
			if u.Path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), u.Path))
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(to))); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", name, l[1], err)
				continue
			}
			if u.Fragment != "" && pages[to].anchors[u.Fragment] == 0 {
				t.Errorf("%s: the link %s has no such anchor", name, l[1])
			}
		}
	}
}

// Every file and folder of the repository that a page names exists. Names in capitals
// are placeholders.
func TestDocumentPaths(t *testing.T) {
	path := regexp.MustCompile("`((?:abi|dashboard|docs|examples|guest-sdk|host|store|tests)/[\\w./-]+)`")
	for name, p := range readDocs(t) {
		for _, m := range path.FindAllStringSubmatch(p.text, -1) {
			if strings.Contains(m[1], "NAME") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
	}
}

// Every document, heading and anchor that a comment cites exists, as in
// docs/spec/protocol.md, "Checkpoints" or docs/spec/abi.md#calls-that-wait.
func TestCitations(t *testing.T) {
	pages := readDocs(t)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			checkCitations(t, path, pages)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkCitations(t *testing.T, path string, pages map[string]page) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(src, []byte("docs/")) {
		return
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	for _, group := range file.Comments {
		text := commentText(group)
		for _, at := range citation.FindAllStringSubmatchIndex(text, -1) {
			cited := text[at[0]:at[1]]
			name := citedPrefix.FindString(cited)
			where := files.Position(group.Pos())
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s cites %s, which is not there", where, name)
				continue
			}
			if at[2] >= 0 && pages[name].anchors[text[at[2]:at[3]]] == 0 {
				t.Errorf("%s cites %s: no such anchor", where, cited)
			}
			if at[4] < 0 {
				continue
			}
			titles, rest := []string{text[at[4]:at[5]]}, text[at[1]:]
			for more := continued.FindStringSubmatch(rest); more != nil; more = continued.FindStringSubmatch(rest) {
				titles, rest = append(titles, more[1]), rest[len(more[0]):]
			}
			for _, title := range titles {
				if !pages[name].headings[title] {
					t.Errorf("%s cites %s, %q: no such heading", where, name, title)
				}
			}
		}
	}
}

// commentText is a comment on one line.
func commentText(group *ast.CommentGroup) string {
	return strings.Join(strings.Fields(group.Text()), " ")
}

// Anchors name rules in words, never by a letter and a number.
func TestAnchorsAreWords(t *testing.T) {
	number := regexp.MustCompile(`^[a-z]{1,2}[0-9]+$`)
	for name, p := range readDocs(t) {
		for a := range p.anchors {
			if number.MatchString(a) {
				t.Errorf("%s: the anchor %s says nothing", name, a)
			}
		}
	}
}

// Examples of JSON in pages are valid JSON.
func TestExamplesAreJSON(t *testing.T) {
	for name, p := range readDocs(t) {
		for _, b := range p.blocks {
			kind, _, _ := strings.Cut(b.info, " ")
			if kind != "json" || !strings.HasPrefix(name, "docs/spec/") {
				continue
			}
			d := json.NewDecoder(strings.NewReader(b.text))
			var v any
			err := d.Decode(&v)
			for err == nil {
				err = d.Decode(&v)
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v in\n%s", name, err, b.text)
			}
		}
	}
}

// The manifest in the specification is valid.
func TestExampleManifest(t *testing.T) { exampleManifest(t) }

func exampleManifest(t *testing.T) *abi.Manifest {
	t.Helper()
	m, err := abi.ReadManifest([]byte(readPage(t, "../docs/spec/manifest.md").blocks[0].text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The sessions in docs/spec/protocol.md follow the protocol: they have the lines of the
// guest, in order, with the answers of the host between them. The first block has
// START.
func TestExampleSession(t *testing.T) {
	manifest := exampleManifest(t)
	var start abi.Start
	var p *abi.Protocol
	done := 0
	for _, b := range readPage(t, "../docs/spec/protocol.md").blocks {
		from, _ := strings.CutPrefix(b.info, "json ")
		switch from {
		case "host":
			switch {
			case p == nil:
				if err := json.Unmarshal([]byte(b.text), &start); err != nil {
					t.Fatal(err)
				}
				p = session(t, start, manifest)
			case strings.Contains(b.text, `"INTERACTION_RESPONSE"`):
				if v := p.Step(abi.StepAnswer); v != nil {
					t.Errorf("%s: %v", b.text, v)
				}
			}
		case "guest":
			if p.Phase() == abi.Finishing {
				p = session(t, start, manifest)
			}
			for line := range strings.Lines(b.text) {
				m, v := p.Line([]byte(strings.TrimSpace(line)))
				if v != nil {
					t.Fatalf("%s: %v", line, v)
				}
				if d, ok := m.(*abi.DoneMessage); ok {
					done++
					if d.RecordsEmitted == nil || *d.RecordsEmitted != p.Records() {
						t.Errorf("DONE says another number of records than %d", p.Records())
					}
				}
			}
		}
	}
	if done != 1 {
		t.Errorf("%d sessions came to their end", done)
	}
}

// session is the protocol of a run that was handed a START line.
func session(t *testing.T, start abi.Start, manifest *abi.Manifest) *abi.Protocol {
	t.Helper()
	asked, err := json.Marshal(start.Scope)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scope.Normalise(scope.Request{Manifest: manifest, Explicit: asked})
	if err != nil {
		t.Fatal(err)
	}
	p := abi.NewProtocol(abi.Contract{
		Scope: s, Manifest: manifest, Records: scope.NewFilter(s, manifest), Interactive: start.Bindings.Interactive != nil,
		Stdio: true, Limits: abi.DefaultLimits(), NewID: func() string { return "asst_1" },
	})
	p.Step(abi.StepStart)
	return p
}

// The lists of subtypes and error numbers are those of the code, and sluice.h
// declares every function that a guest may import.
func TestSpecificationAndCode(t *testing.T) {
	pages := readDocs(t)
	var frozen []byte
	files, err := filepath.Glob("../abi/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		frozen = append(frozen, text...)
	}
	subtypes := map[string]bool{}
	for _, m := range regexp.MustCompile(`Subtype += "([a-z_0-9]+)"`).FindAllStringSubmatch(string(frozen), -1) {
		subtypes[m[1]] = true
	}
	listed := map[string]bool{}
	for _, b := range pages["docs/spec/protocol.md"].blocks {
		if strings.HasPrefix(b.text, "abi_fault ") {
			for _, word := range strings.Fields(b.text) {
				listed[word] = true
			}
		}
	}
	for s := range subtypes {
		if !listed[s] {
			t.Errorf("the subtype %s is not in docs/spec/protocol.md", s)
		}
	}
	for s := range listed {
		if !subtypes[s] {
			t.Errorf("the subtype %s of docs/spec/protocol.md is not in the code", s)
		}
	}
	header, err := os.ReadFile("../docs/spec/sluice.h")
	if err != nil {
		t.Fatal(err)
	}
	for e := abi.Errno(1); e.Known(); e++ {
		if !strings.Contains(pages["docs/spec/abi.md"].text, fmt.Sprintf("| %d | `%s` |", e, e.String())) {
			t.Errorf("%s is not %d in docs/spec/abi.md", e, e)
		}
		if !strings.Contains(string(header), fmt.Sprintf("SLUICE_%s = %d", e.String(), e)) {
			t.Errorf("%s is not %d in docs/spec/sluice.h", e, e)
		}
	}
	wasi, err := os.ReadFile("../host/sandbox/module_imports.go")
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for _, m := range regexp.MustCompile(`\{"([a-z_0-9]+)", "[iI]*>`).FindAllStringSubmatch(string(wasi), -1) {
		functions = append(functions, m[1])
	}
	if !slices.ContainsFunc(pages["docs/spec/abi.md"].blocks,
		func(b block) bool { return slices.Equal(strings.Fields(b.text), functions) }) {
		t.Errorf("docs/spec/abi.md does not list the functions of WASI: %s", strings.Join(functions, " "))
	}
	declared := strings.Count(string(header), "\nSLUICE_IMPORT(")
	if declared != len(abi.Functions) {
		t.Errorf("docs/spec/sluice.h declares %d functions of %d", declared, len(abi.Functions))
	}
	for _, f := range abi.Functions {
		if !strings.Contains(string(header), fmt.Sprintf("SLUICE_IMPORT(%q, %q)", f.Module, f.Name)) {
			t.Errorf("docs/spec/sluice.h has no %s.%s", f.Module, f.Name)
		}
		if !strings.Contains(pages["docs/spec/abi.md"].text, "\n| `"+f.Name+"`") {
			t.Errorf("docs/spec/abi.md has no %s.%s", f.Module, f.Name)
		}
	}
}
