package egress_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// FuzzReplay: a recording is a stranger's text; whatever it says, a replay of it
// neither panics nor goes on for ever, and what was read is written and read the
// same.
func FuzzReplay(f *testing.F) {
	const header = `{"sluice_recording":1,"connector_id":"a","version":"1","module":"sha256:0","clock":"2026-01-02T03:04:05.678Z","seed":"` +
		`0000000000000000000000000000000000000000000000000000000000000000","exchanges":1,"start":{"connection":"a","mode":"full_refresh","scope":{},"state":{"a":"{{credential:1}}"},"secrets":["token"]}}` + "\n"
	f.Add([]byte(header + `{"request":{"method":"GET","url":"https://a.example/{{secret:token}}"},"answer":{"status":200,"url":"https://a.example/","headers":[["X","{{credential:1}}"]],"body":{"text":"{{secret:token}} {{literal:}} {{"}}}` + "\n"))
	f.Add([]byte(header + `{"request":{"method":"POST","url":"x","body":{"text":"{\"a\":\"\\u007b{\"}"}},"answer":{"status":204,"url":"","broken":{"errno":"EUNAVAIL","code":"c","message":"{{secret:token}}"}}}` + "\n"))
	f.Add([]byte(header + `{"request":{"method":"GET","url":""},"failure":{"errno":"ERATE","code":"c","message":"m","retry_after_ms":5}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := egress.ParseRecording(text)
		if err != nil {
			if e := (*egress.RecordingError)(nil); !errors.As(err, &e) {
				t.Fatalf("not a *RecordingError: %v", err)
			}
			return
		}
		again, err := r.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := egress.ParseRecording(again); err != nil {
			t.Fatalf("written anew it cannot be read: %v\n%s", err, again)
		}
		_, secrets := r.WithStandIns([]string{"token"})
		s := network.NewSession(egress.NewReplayer(r))
		defer s.Close()
		s.Seal("token", handle, secrets["token"], [][]byte{[]byte(secrets["token"])}, nil)
		for i := range r.Exchanges {
			q := r.Exchanges[i].Request
			reply, errno := s.Handle(context.Background(), abi.CallNetworkRequest,
				frame(`{"method":"`+q.Method+`","url":`+quoted(q.URL)+`,"inline_bytes":10}`, string(q.Body)))
			if errno == abi.OK && len(reply) < 4 {
				t.Fatal("a reply without a head")
			}
			for h := range uint32(3) {
				if _, errno := s.Handle(context.Background(), abi.CallRead, abi.AppendRead(nil, h+1, 100)); errno == abi.EIO {
					t.Fatal(io.ErrUnexpectedEOF)
				}
			}
		}
		_, _ = s.Fault(true)
	})
}

func quoted(text string) string { return string(strictjson.AppendQuote(nil, text)) }
