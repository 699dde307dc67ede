package caldav_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// large is a server with one calendar of many events, which Radicale would take minutes
// to serve.
type large struct {
	events  int
	fetched int
	most    int // objects of one request
}

var hrefs = regexp.MustCompile(`<href>/sam/work/(\d+)\.ics</href>`)

func (l *large) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if name, word, ok := r.BasicAuth(); !ok || name != user || word != password || err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	w.WriteHeader(http.StatusMultiStatus)
	fmt.Fprint(w, `<multistatus xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">`)
	defer fmt.Fprint(w, `</multistatus>`)
	say := func(href, props string) {
		fmt.Fprintf(w, `<response><href>%s</href><propstat><prop>%s</prop><status>HTTP/1.1 200 OK</status></propstat></response>`, href, props)
	}
	switch {
	case strings.Contains(string(body), "calendar-multiget"):
		asked := hrefs.FindAllStringSubmatch(string(body), -1)
		l.fetched += len(asked)
		l.most = max(l.most, len(asked))
		for _, a := range asked {
			say("/sam/work/"+a[1]+".ics",
				"<getetag>\"v1\"</getetag><C:calendar-data>BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:"+a[1]+
					"\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260101T000000Z\r\nSUMMARY:Number "+a[1]+"\r\nDESCRIPTION:"+
					strings.Repeat("long text ", 200)+"\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n</C:calendar-data>")
		}
	case strings.Contains(string(body), "sync-collection"):
		for i := range l.events {
			say(fmt.Sprintf("/sam/work/%d.ics", i), `<getetag>"v1"</getetag>`)
		}
		fmt.Fprint(w, `<sync-token>urn:1</sync-token>`)
	default:
		say("/sam/work/", `<resourcetype><collection/><C:calendar/></resourcetype><displayname>Work</displayname><sync-token>urn:1</sync-token>`)
	}
}

// A calendar of 5,000 events is read in batches and in bounded memory, and a
// second run asks for nothing.
func TestLarge(t *testing.T) {
	l := &large{events: 5000}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	c := open(t, &radicale{url: s.URL})
	q := c.request(t)
	q.Scope = []byte(`{"streams":[{"name":"calendars"},{"name":"events"}]}`)
	result := c.do(t, q)
	if result.Status != abi.Succeeded || result.RecordsEmitted != 5001 || len(result.KnownGaps) > 0 {
		t.Fatalf("%s with %d records: %+v %+v", result.Status, result.RecordsEmitted, result.Failure, result.ConnectorError)
	}
	if l.fetched != 5000 || l.most > 100 {
		t.Errorf("%d objects were fetched, at most %d at once", l.fetched, l.most)
	}
	t.Logf("%+v", result.Usage)
	if most := int64(64 << 20); result.Usage.GuestMemory > most {
		t.Errorf("the connector took %d bytes, want at most %d", result.Usage.GuestMemory, most)
	}
	if result = c.do(t, q); result.RecordsEmitted != 0 || l.fetched != 5000 {
		t.Errorf("the second run emitted %d records", result.RecordsEmitted)
	}
}
