package browsing_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// A download that ends while too many handles are open is delivered once some are
// closed.
func TestDownloadOnFullShelf(t *testing.T) {
	site := fileServer(t)
	h := browsing.Host(t, browser.Options{ActionsPerMinute: 1000})
	s := browsing.Begin(t, h, browser.SessionOptions{Request: abi.BrowserRequest{Downloads: true}}, site)
	s.Must(browsing.M{"verb": "open", "url": site + "/"})
	var open []uint32
	for range abi.MaxHandles {
		var shot struct{ Handle uint32 }
		decode(t, s.Must(browsing.M{"verb": "screenshot", "target": browsing.Selector("id", "plain")}).Raw, &shot)
		open = append(open, shot.Handle)
	}
	r := s.Must(clickFor("plain"))
	if got := files(r); len(got) != 1 || got[0]["handle"] != nil || got[0]["reason"] != "too_many_open" {
		t.Fatalf("%s", r.Raw)
	}
	if _, errno := s.Handle(context.Background(), abi.CallClose,
		binary.LittleEndian.AppendUint32(nil, open[0])); errno != abi.OK {
		t.Fatal(errno)
	}
	var reply struct{ Downloads []map[string]any }
	decode(t, s.Call(browsing.M{"verb": "expect", "expect": browsing.M{"kind": "download"}}).Raw, &reply)
	if len(reply.Downloads) != 1 || string(drain(t, s, reply.Downloads[0]["handle"])) != "this is plain" {
		t.Errorf("%v", reply.Downloads)
	}
}
