package egress_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

const (
	goodHeader = `{"sluice_recording":1,"connector_id":"c","version":"1","module":"sha256:0","clock":"2026-01-02T03:04:05.678Z",` +
		`"seed":"00000000000000000000000000000000000000000000000000000000000000ff","exchanges":1,"start":{"connection":"c","mode":"full_refresh","scope":{}}}` + "\n"
	goodExchange = `{"request":{"method":"GET","url":"https://a.example/"},"answer":{"status":200,"url":"https://a.example/","body":{"text":"hello"}}}` + "\n"
)

func whole() *egress.Recording {
	return &egress.Recording{
		Header: egress.Header{ConnectorID: "c", Version: "1", Module: "sha256:0",
			Clock: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), Seed: [32]byte{31: 255},
			Connection: "c", Mode: "incremental", Scope: []byte(`{"streams":[]}`), State: []byte(`{"a":{}}`),
			Config: []byte(`{"x":"<y>"}`), Hosts: []string{"a.example"}, Secrets: []string{"token"}},
		Exchanges: []egress.Exchange{
			{Line: 2, Request: egress.RecordedRequest{Method: "POST", URL: "https://a.example/?q={{secret:token}}",
				Redirect: "manual", MaxBytes: 7,
				Headers: [][2]string{{"Accept", "x"}, {"X-Y", ""}}, Body: []byte("text\n")},
				Answer: &egress.RecordedResponse{Status: 200, URL: "https://a.example/", Headers: [][2]string{{"A", "b"}},
					Redirects: 1, Bytes: 0, Body: []byte{0, 255},
					Broken: &egress.Error{Errno: abi.EUNAVAIL, Code: "broken_off", Message: "m"}}},
			{Line: 3, Request: egress.RecordedRequest{Method: "PUT", URL: "u",
				Digest: strings.Repeat("ab", 32), Length: 70_000},
				Failure: &egress.Error{Errno: abi.ERATE, Code: "rate", Message: "m", Step: "s", RetryAfter: 5}},
			{Line: 4, Request: egress.RecordedRequest{Method: "HEAD", URL: "u"},
				Answer: &egress.RecordedResponse{Status: 204, URL: "u", Bytes: -1}},
		},
	}
}

func TestRecordingRoundTrip(t *testing.T) {
	text, err := whole().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := egress.ParseRecording(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole(), got); diff != "" {
		t.Error(diff)
	}
	if strings.Count(string(text), "\n") != 4 || !strings.Contains(string(text), `"<y>"`) {
		t.Errorf("not a line each, for people:\n%s", text)
	}
}

// A damaged recording: the line number and what was expected.
func TestDamagedRecordings(t *testing.T) {
	alter := func(old, with string) string {
		text := goodHeader + goodExchange
		if !strings.Contains(text, old) {
			t.Fatalf("nothing to alter: %s", old)
		}
		return strings.Replace(text, old, with, 1)
	}
	tests := []struct{ text, want string }{
		{"", "line 1: want the header of a recording, got the end of the file"},
		{"hello\n", "line 1: want one JSON object, got"},
		{"{}\n", `line 1: want the header of a recording, with a member "sluice_recording", got none`},
		{alter(`recording":1`, `recording":2`), "line 1: want sluice_recording 1, which this build reads, got 2"},
		{goodHeader, "line 2: want exchange 1 of 1, got the end of the file"},
		{goodHeader + goodExchange + goodExchange,
			"line 3: want the end of the file after 1 exchanges, as the header says, got another line"},
		{strings.TrimSuffix(goodHeader+goodExchange, "\n"),
			"line 2: want a line that ends, got the end of the file within it"},
		{goodHeader + goodExchange[:40] + "\n", "line 2: want one JSON object, got"},
		{alter("05.678Z", "05Z"),
			"line 1: want the header.clock as a time such as 2026-01-02T03:04:05.678Z, from 1970 to 2099, got"},
		{alter("2026", "2226"), "line 1: want the header.clock"},
		{alter("00ff", "00fg"), "line 1: want the header.seed as 64 hexadecimal digits, got"},
		{alter(`"module":"sha256:0",`, ``), "line 1: want the header.module, got none"},
		{alter(`full_refresh`, `all`), `line 1: want the header.start.mode as full_refresh or incremental, got "all"`},
		{alter(`"scope":{}`, `"scope":[]`), "line 1: want the header.start.scope as an object, got []"},
		{alter(`"c","mode"`, `"../c","mode"`), "line 1: want the header.start.connection as the id of a connection"},
		{alter(`"exchanges":1`, `"exchanges":-1`),
			"line 1: want the header.exchanges as a whole number from 0 to 100000, got -1"},
		{alter(`"url":"https://a.example/"}`, `"url":"u","metod":1}`),
			`line 2: want a member of request: method, url, redirect, max_bytes, headers, body, got "metod"`},
		{alter(`"url":"https://a.example/"}`, `"URL":"https://a.example/"}`), `line 2: want a member of request: method, url`},
		{alter(`,"url":"https://a.example/"}`, `}`), "line 2: want request.url, got none"},
		{alter(`"url":"https://a.example/"}`, `"url":null}`), "line 2: want request.url as a URL, got null"},
		{alter(`"url":"https://a.example/"}`, `"url":"u","max_bytes":0}`), "line 2: want request.max_bytes as a whole number"},
		{alter(`"GET"`, `"CONNECT"`), "line 2: want request.method as one of GET"},
		{alter(`"GET"`, `7`), "line 2: want request.method as one of GET"},
		{alter(`"status":200`, `"status":20`), "line 2: want answer.status as a whole number from 100 to 999, got 20"},
		{alter(`"status":200`, `"status":200,"status":200`), "line 2: want one JSON object, got"},
		{alter(`{"text":"hello"}`, `{"base64":"a"}`), "line 2: want answer.body.base64 as base64, got"},
		{alter(`{"text":"hello"}`, `{"text":"a","base64":"YQ=="}`), "line 2: want answer.body with text, with base64"},
		{alter(`{"text":"hello"}`, `{"sha256":"a"}`), "line 2: want a member of answer.body: text, base64, got"},
		{alter(`"body":{"text"`, `"headers":[["a b","c"]],"body":{"text"`),
			"line 2: want answer.headers as pairs of a name and a value, got"},
		{alter(`"body":{"text"`, `"headers":[["a","b\r\nc: d"]],"body":{"text"`),
			"line 2: want answer.headers as pairs of a name and a value, got"},
		{alter(`"answer":`, `"failure":`), "line 2: want a member of an exchange.failure"},
		{alter(`,"answer":{"status":200,"url":"https://a.example/","body":{"text":"hello"}}`, ``),
			"line 2: want either an answer or a failure, got both or none"},
		{alter(`"body":{"text":"hello"}`, `"broken":{"errno":"ECANCELED","code":"c","message":""}`),
			"line 2: want answer.broken.errno as one that a request can fail with"},
	}
	for _, test := range tests {
		_, err := egress.ParseRecording([]byte(test.text))
		var bad *egress.RecordingError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q:\n got %v\nwant %s", test.text, err, test.want)
		}
	}
	if _, err := egress.ParseRecording([]byte(goodHeader + goodExchange)); err != nil {
		t.Error(err) // what they are made of is good
	}
}

// Whatever a file has, it is read to the same thing again or refused with a line
// of it.
func FuzzRecording(f *testing.F) {
	text, err := whole().Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(goodHeader + goodExchange))
	if b, err := os.ReadFile("../../examples/feed/testdata/recording.jsonl"); err == nil {
		f.Add(b)
	} else {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := egress.ParseRecording(text)
		if err != nil {
			var bad *egress.RecordingError
			if !errors.As(err, &bad) || bad.Line < 1 || bad.Line > strings.Count(string(text), "\n")+1 {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		again, err := r.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := egress.ParseRecording(again)
		if err != nil {
			t.Fatalf("written and not read: %v\n%s", err, again)
		}
		if diff := cmp.Diff(r, second); diff != "" {
			t.Fatal(diff)
		}
		egress.NewReplayer(second) // and nothing of it stops a replay from starting
	})
}
