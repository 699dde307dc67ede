package dashboard

import (
	"fmt"
	"net/url"
	"strings"

	"rsc.io/qr"

	"github.com/sluicehost/sluice/abi"
)

// A link is an attachment that leads elsewhere. It is opened by a click, with its host shown in
// ASCII so that lookalike letters are visible; or it is a QR code with its text beside it.
type link struct {
	Label string
	URL   string // http or https in ASCII; "" if there is nothing to click
	Host  string
	Plain bool // http: others can read along
	Text  string
	Image *picture // of a QR code
	Only  bool     // there is only Text: a file or a fixture
}

// maxLink bounds the address shown, maxQR the text drawn as a code.
const (
	maxLink = 2048
	maxQR   = 1200
)

func linksOf(attachments []abi.Attachment) []link {
	var out []link
	for _, a := range attachments {
		l := link{Label: a.Label}
		switch a.Kind {
		case "url":
			if l.Text = abi.Cut(abi.CleanLines(a.URL), maxLink); l.Text == "" {
				continue
			}
			l.URL, l.Host, l.Plain = target(a.URL)
		case "qr":
			l.Text = a.Payload
			if l.Text == "" {
				l.Text = a.URL
			}
			if l.Image = draw(l.Text); l.Text == "" {
				continue
			}
			l.Text = abi.Cut(abi.CleanLines(l.Text), maxLink)
		case "file", "fixture":
			l.Text = abi.Cut(abi.CleanLines(strings.Join(strings.Fields(a.Kind+" "+a.Ref+" "+a.Accept+" "+a.Status), " ")),
				maxLink)
			l.Only = true
		default:
			continue
		}
		out = append(out, l)
	}
	return out
}

// target returns a URL that a page may link to: absolute, http or https, without a user name, in
// ASCII.
func target(raw string) (address, host string, plain bool) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxLink || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.Opaque != "" {
		return "", "", false
	}
	for _, r := range raw {
		if r <= 0x20 || r >= 0x7f { // a host in other letters can imitate another
			return "", "", false
		}
	}
	name := u.Hostname()
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port := u.Port(); port != "" {
		name += ":" + port
	}
	u.Host = name
	return u.String(), name, u.Scheme == "http"
}

// A picture is a QR code as the path of an SVG.
type picture struct {
	Size int
	Path string
}

// quiet is the white border that QR readers need, in modules.
const quiet = 4

// draw returns nil for a text that cannot be a code: too long or empty.
func draw(text string) *picture {
	if text == "" || len(text) > maxQR {
		return nil
	}
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil
	}
	p := &picture{Size: code.Size + 2*quiet}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for x+run < code.Size && code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				writeRun(&path, x+quiet, y+quiet, run)
				x += run
			}
		}
	}
	p.Path = path.String()
	return p
}

// writeRun draws n black squares in a row.
func writeRun(path *strings.Builder, x, y, n int) {
	for _, part := range []any{"M", x, " ", y, "h", n, "v1h-", n, "z"} {
		fmt.Fprint(path, part)
	}
}
