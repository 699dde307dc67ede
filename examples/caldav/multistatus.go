package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

const namespaces = `xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:A="urn:ietf:params:xml:ns:carddav" ` +
	`xmlns:S="http://calendarserver.org/ns/" xmlns:I="http://apple.com/ns/ical/"`

const (
	// askProps asks a resource what it is and where others are.
	askProps = `<?xml version="1.0" encoding="utf-8"?><propfind ` + namespaces +
		`><prop><resourcetype/><displayname/><current-user-principal/>` +
		`<C:calendar-home-set/><A:addressbook-home-set/><C:calendar-description/><A:addressbook-description/><I:calendar-color/>` +
		`<C:supported-calendar-component-set/><supported-report-set/><current-user-privilege-set/><sync-token/><S:getctag/></prop></propfind>`
	// askList asks a collection for its objects.
	askList = `<?xml version="1.0" encoding="utf-8"?><propfind ` + namespaces +
		`><prop><getetag/><resourcetype/></prop></propfind>`

	calendarMultiget    = "C:calendar-multiget"
	addressbookMultiget = "A:addressbook-multiget"
)

// askChanges asks a collection for what changed since a token, or for all.
func askChanges(token string) string {
	return `<?xml version="1.0" encoding="utf-8"?><sync-collection ` + namespaces + `><sync-token>` + escape(token) +
		`</sync-token><sync-level>1</sync-level><prop><getetag/></prop></sync-collection>`
}

// askObjects asks for objects by their references.
func askObjects(report string, objects []*object) string {
	var b strings.Builder
	prop := "<C:calendar-data/>"
	if report == addressbookMultiget {
		prop = "<A:address-data/>"
	}
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?><` + report + " " + namespaces +
		`><prop><getetag/>` + prop + `</prop>`)
	for _, o := range objects {
		b.WriteString("<href>" + escape(o.url.EscapedPath()) + "</href>")
	}
	b.WriteString("</" + report + ">")
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return "" // a Builder takes everything
	}
	return b.String()
}

// A response is what a multistatus says of one resource (RFC 4918, 14.24).
type response struct {
	Hrefs     []string   `xml:"DAV: href"`
	Status    string     `xml:"DAV: status"`
	Propstats []propstat `xml:"DAV: propstat"`
}

type propstat struct {
	Status string `xml:"DAV: status"`
	Prop   props  `xml:"DAV: prop"`
}

// props are those that are asked for.
type props struct {
	Type struct {
		Collection  *struct{} `xml:"DAV: collection"`
		Calendar    *struct{} `xml:"urn:ietf:params:xml:ns:caldav calendar"`
		Addressbook *struct{} `xml:"urn:ietf:params:xml:ns:carddav addressbook"`
	} `xml:"DAV: resourcetype"`
	Name      string     `xml:"DAV: displayname"`
	Principal references `xml:"DAV: current-user-principal"`
	Calendars references `xml:"urn:ietf:params:xml:ns:caldav calendar-home-set"`
	Books     references `xml:"urn:ietf:params:xml:ns:carddav addressbook-home-set"`
	About     string     `xml:"urn:ietf:params:xml:ns:caldav calendar-description"`
	BookAbout string     `xml:"urn:ietf:params:xml:ns:carddav addressbook-description"`
	Color     string     `xml:"http://apple.com/ns/ical/ calendar-color"`
	Token     string     `xml:"DAV: sync-token"`
	Tag       string     `xml:"http://calendarserver.org/ns/ getctag"`
	ETag      string     `xml:"DAV: getetag"`
	Calendar  string     `xml:"urn:ietf:params:xml:ns:caldav calendar-data"`
	Card      string     `xml:"urn:ietf:params:xml:ns:carddav address-data"`
	Holds     []struct {
		Name string `xml:"name,attr"`
	} `xml:"urn:ietf:params:xml:ns:caldav supported-calendar-component-set>comp"`
	Reports []struct {
		Sync *struct{} `xml:"DAV: sync-collection"`
	} `xml:"DAV: supported-report-set>supported-report>report"`
	Privileges []struct {
		Write   *struct{} `xml:"DAV: write"`
		Content *struct{} `xml:"DAV: write-content"`
		All     *struct{} `xml:"DAV: all"`
	} `xml:"DAV: current-user-privilege-set>privilege"`
}

// references are a property that points elsewhere.
type references struct {
	Hrefs []string `xml:"DAV: href"`
}

// found returns the properties that the resource has; ok is false if the server
// says nothing of them.
func (r *response) found() (*props, bool) {
	for i := range r.Propstats {
		if code := statusOf(r.Propstats[i].Status); code == 0 || code/100 == 2 {
			return &r.Propstats[i].Prop, true
		}
	}
	return &props{}, false
}

// status is that of the resource, 0 when there is none.
func (r *response) status() int { return statusOf(r.Status) }

// statusOf reads a status line.
func statusOf(line string) int {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return n
}

var errNoMultistatus = errors.New("the answer is no multistatus")

// readMultistatus hands over responses one by one, so that a long answer is
// never in memory at once, and returns the sync token after them.
func readMultistatus(r io.Reader, each func(*response) error) (token string, err error) {
	d := xml.NewDecoder(r)
	inside := false
	for {
		t, err := d.Token()
		if err == io.EOF {
			if !inside {
				return "", errNoMultistatus
			}
			return strings.TrimSpace(token), nil
		}
		if err != nil {
			return "", err
		}
		e, ok := t.(xml.StartElement)
		switch {
		case !ok:
		case !inside:
			if inside = e.Name == (xml.Name{Space: "DAV:", Local: "multistatus"}); !inside {
				return "", errNoMultistatus
			}
		case e.Name == (xml.Name{Space: "DAV:", Local: "response"}):
			var one response
			if err := d.DecodeElement(&one, &e); err != nil {
				return "", err
			}
			if err := each(&one); err != nil {
				return "", err
			}
		case e.Name == (xml.Name{Space: "DAV:", Local: "sync-token"}):
			if err := d.DecodeElement(&token, &e); err != nil {
				return "", err
			}
		default:
			if err := d.Skip(); err != nil {
				return "", err
			}
		}
	}
}

// broken says why an answer could not be read to its end.
func broken(err error, what string) error {
	if _, ok := errors.AsType[*trouble](err); ok {
		return err
	}
	if _, ok := errors.AsType[*guest.Error](err); ok {
		return unsent(err, what)
	}
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, errNoMultistatus) {
		return troublef(reasonMalformed, "%s: %w", what, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return unsent(err, what)
	}
	return err // of who was handed the responses
}

// resolve makes a reference absolute. One of another scheme is none.
func resolve(base *url.URL, href string) (*url.URL, bool) {
	u, err := base.Parse(strings.TrimSpace(href))
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" || len(href) > maxPath {
		return nil, false
	}
	u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
	return u, true
}

// maxPath bounds references.
const maxPath = 2000
