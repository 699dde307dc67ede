//go:build unix

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// printed is a PDF of one page, and what else stands behind it.
func printed(behind string) []byte {
	return []byte(`%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F1 24 Tf 50 100 Td (Statement) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
` + behind)
}

// TestShownFiles: pictures and PDFs are on the page of their record and beside its list;
// nothing of a file runs where the dashboard does, whatever it calls itself.
func TestShownFiles(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 800, 60))); err != nil {
		t.Fatal(err)
	}
	huge := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\xff\xff\x00\x00\xff\xff"), 8, 6, 0, 0, 0)
	huge = binary.BigEndian.AppendUint32(huge, crc32.ChecksumIEEE(huge[12:]))
	const pwn = `<script>top.pwned=1;parent.pwned=1;window.pwned=1;fetch("/pwned")</script>`
	files := []struct {
		name, media, shown string
		content            []byte
	}{
		{"picture.png", "image/png", "IMG", picture.Bytes()},
		{"statement.pdf", "application/pdf", "IFRAME", printed("")},
		{"polyglot.pdf", "text/html", "IFRAME", printed("<html>" + pwn)},
		{"script.pdf", "application/pdf", "",
			bytes.Replace(printed(""), []byte("/Pages 2 0 R"),
				[]byte(`/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert("pwned"))>>`), 1)},
		{"vector.svg", "image/svg+xml", "",
			[]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="top.pwned=1">` + pwn + `</svg>`)},
		{"page.pdf", "application/pdf", "", []byte("<!doctype html>" + pwn)},
		{"picture.jpg", "image/jpeg", "", []byte("<!doctype html>" + pwn)},
		{"huge.png", "image/png", "", huge},
	}
	var steps []step
	for _, f := range files {
		steps = append(steps, step{"do": "attach", "text": f.name, "media": f.media, "content": f.content})
	}
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", steps...)
	ended(t, h.Client, "one")
	b := signIn(t, h, false)
	for _, f := range files {
		b.open("/ui/record?connection=one&stream=items&key=" + f.name)
		b.until(`document.querySelector(".files figure") !== null`)
		tags := eval[string](b, `[...document.querySelectorAll(".files figure > *")].map((x) => x.tagName).join()`)
		if want := strings.TrimPrefix(f.shown+",FIGCAPTION", ","); tags != want {
			t.Errorf("%s: %s, want %s", f.name, tags, want)
		}
		type got struct {
			Type, Policy, Disposition, Sniff string
		}
		head := eval[got](b, `fetch(document.querySelector(".files a[download]").href + "?view=true").then((r) => ({Type: r.headers.get("content-type"),
			Policy: r.headers.get("content-security-policy"), Disposition: r.headers.get("content-disposition"), Sniff: r.headers.get("x-content-type-options")}))`)
		inline := strings.HasPrefix(head.Disposition, "inline;")
		if inline != (f.shown != "") || head.Sniff != "nosniff" ||
			!strings.HasPrefix(head.Policy, "default-src 'none'; sandbox") || strings.Contains(head.Type, "html") ||
			strings.Contains(head.Type, "svg") {
			t.Errorf("%s: %+v", f.name, head)
		}
		if f.shown == "IMG" {
			b.until(`document.querySelector(".files img").naturalWidth === 800`)
			b.phone()
			b.until(`document.documentElement.scrollWidth <= 390`)
			b.wide()
		}
		if strings.HasPrefix(f.name, "statement") {
			looked(t, b, "pdf")
		}
		if pwned := eval[bool](b, `window.pwned !== undefined`); pwned {
			t.Errorf("%s ran", f.name)
		}
		b.clean(f.name)
	}
	b.open("/ui/records?connection=one&stream=items")
	b.click(fmt.Sprintf(`[data-drawer*=%q]`, "picture.png"))
	b.until(`document.querySelector("#drawer").open && document.querySelector("#drawer img")?.naturalWidth === 800`)
	looked(t, b, "drawer-picture")

	// As a page of its own: it is in the sandbox, and there is nothing of the dashboard's.
	at := eval[string](b, `document.querySelector("#drawer img").src`)
	b.do(chromedp.Navigate(at))
	if origin := eval[string](b, `self.origin`); origin != "null" {
		t.Errorf("a picture has the origin %s", origin)
	}
}
