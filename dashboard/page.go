package dashboard

import (
	"bytes"
	"compress/gzip"
	"embed"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

//go:embed templates
var templateFiles embed.FS

// content is what a page shows: Body, and what the layout needs.
type content struct {
	Title   string
	Nav     string // current navigation entry
	CSRF    string // token that every change must repeat
	Inbox   badge
	Live    string // address of the page's event stream; "" if it has none
	Chart   bool   // the page has a chart
	Known   bool   // the query names only existing things, so the page may be compressed; see web.SendGzip
	Version string
	Body    any
}

// A frame is what pages share: it renders them, streams their live parts, and counts what waits for
// the owner.
type frame struct {
	waiting
	version string
	pages   map[string]func() (*template.Template, error) // by name, each with layout and parts
	assets  map[string]asset
	now     func() time.Time
}

// newFrame reads the embedded templates and assets. An error is a mistake in one of them.
func newFrame(w waiting, version string, now func() time.Time) (*frame, error) {
	u := &frame{waiting: w, version: version, now: now}
	var err error
	if u.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	u.pages, err = u.loadPages()
	return u, err
}

func (u *frame) routes() []web.Route {
	return []web.Route{
		open("/ui/login", u.login),
		open("/ui/assets/:name", u.asset),
	}
}

// loadPages lists the pages. Each is parsed, with its copy of the layout and the shared parts, when it is first shown.
func (u *frame) loadPages() (map[string]func() (*template.Template, error), error) {
	base, err := template.New("layout.html").Funcs(u.words()).ParseFS(templateFiles, "templates/layout.html",
		"templates/part_*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(templateFiles, "templates/page_*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]func() (*template.Template, error){}
	for _, name := range names {
		pages[strings.TrimSuffix(strings.TrimPrefix(path.Base(name), "page_"),
			".html")] = sync.OnceValues(func() (*template.Template, error) {
			t, err := base.Clone()
			if err != nil {
				return nil, err
			}
			return t.ParseFS(templateFiles, name)
		})
	}
	return pages, nil
}

// show answers with a page.
func (u *frame) show(c *fiber.Ctx, name string, p content) error {
	p.CSRF, p.Version = web.Session(c).CSRFToken, u.version
	if p.Live == "" {
		p.Live = "/ui/live/badge"
	}
	var err error
	if p.Inbox, err = u.badge(web.Context(c)); err != nil {
		return err
	}
	text, err := u.render(name, "layout.html", p)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, htmlType)
	var packed []byte
	if p.Known || len(c.Request().URI().QueryString()) == 0 { // a page repeats nothing of a request but its query
		packed = web.Gzip(text, gzip.DefaultCompression)
	}
	return web.SendGzip(c, text, packed)
}

const htmlType = "text/html; charset=utf-8"

// write answers with one template of a page.
func (u *frame) write(c *fiber.Ctx, name, part string, data any) error {
	text, err := u.render(name, part, data)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, htmlType)
	return c.Send(text)
}

func (u *frame) render(name, part string, data any) ([]byte, error) {
	t, err := u.pages[name]()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.ExecuteTemplate(&out, part, data)
	return out.Bytes(), err
}

// login serves the page where a session begins: a script posts the token in the fragment.
func (u *frame) login(c *fiber.Ctx) error { return u.write(c, "login", "bare", nil) }

// done answers an action whose page shows the result by itself.
func done(c *fiber.Ctx, said string) error {
	if said != "" {
		event, err := web.Encode(map[string]string{"sluice:said": said})
		if err != nil {
			return err
		}
		c.Set("HX-Trigger", string(event))
	}
	return web.Nothing(c)
}

// reload answers an action after which the page must be reloaded, unless err is set.
func reload(c *fiber.Ctx, err error) error {
	if err != nil {
		return err
	}
	c.Set("HX-Refresh", "true")
	return web.Nothing(c)
}

// leave answers an action that leads to another page.
func leave(c *fiber.Ctx, to string) error {
	c.Set("HX-Redirect", to)
	return web.Nothing(c)
}
