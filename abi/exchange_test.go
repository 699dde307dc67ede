package abi_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

type exchangeVector struct {
	Name    string
	Request *string
	Least   uint32
	Asked   []struct {
		ID    uint32
		Frame string
	}
	Reply   *string
	Answers []struct {
		ID, Errno uint32
		Reply     string
	}
	Error bool
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestExchangeVectors: requests and replies of the exchange function are read as
// they are written, and nothing else is read.
func TestExchangeVectors(t *testing.T) {
	for _, v := range vectors[exchangeVector](t, "exchange.json") {
		t.Run(v.Name, func(t *testing.T) {
			if v.Request != nil {
				checkRequest(t, v, unhex(t, *v.Request))
			} else {
				checkReply(t, v, unhex(t, *v.Reply))
			}
		})
	}
}

func checkRequest(t *testing.T, v exchangeVector, src []byte) {
	t.Helper()
	least, got, err := abi.ParseExchange(src)
	if v.Error {
		if err == nil {
			t.Errorf("got %v, want an error", got)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []abi.ExchangeRequest{}
	again := abi.AppendLeast(nil, v.Least)
	for _, a := range v.Asked {
		want = append(want, abi.ExchangeRequest{ID: a.ID, Frame: unhex(t, a.Frame)})
		again = want[len(want)-1].Append(again)
	}
	if diff := cmp.Diff(want, append([]abi.ExchangeRequest{}, got...)); diff != "" || least != v.Least {
		t.Errorf("least %d\n%s", least, diff)
	}
	if !bytes.Equal(again, src) {
		t.Errorf("written as % x", again)
	}
}

func checkReply(t *testing.T, v exchangeVector, src []byte) {
	t.Helper()
	got, err := answersOf(src)
	if v.Error {
		if err == nil {
			t.Errorf("got %v, want an error", got)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []abi.ExchangeResponse{}
	again := []byte{}
	for _, a := range v.Answers {
		want = append(want, abi.ExchangeResponse{ID: a.ID, Errno: abi.Errno(a.Errno), Reply: unhex(t, a.Reply)})
		again = want[len(want)-1].Append(again)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(again, src) {
		t.Errorf("written as % x", again)
	}
}

func answersOf(b []byte) ([]abi.ExchangeResponse, error) {
	got := []abi.ExchangeResponse{}
	for len(b) > 0 {
		a, rest, err := abi.NextAnswer(b)
		if err != nil {
			return nil, err
		}
		got, b = append(got, a), rest
	}
	return got, nil
}

// TestExchangeIsBounded: no more is asked at once than may be open.
func TestExchangeIsBounded(t *testing.T) {
	b := abi.AppendLeast(nil, 1)
	for i := range uint32(abi.MaxHandles) {
		b = abi.ExchangeRequest{ID: i}.Append(b)
	}
	if _, got, err := abi.ParseExchange(b); err != nil || len(got) != abi.MaxHandles {
		t.Errorf("%d, %v", len(got), err)
	}
	if _, _, err := abi.ParseExchange(abi.ExchangeRequest{}.Append(b)); err == nil {
		t.Error("one more is taken")
	}
}

// FuzzExchange: whatever is accepted is the encoding of what was decoded.
func FuzzExchange(f *testing.F) {
	for _, v := range vectors[exchangeVector](f, "exchange.json") {
		if v.Request != nil {
			f.Add(unhex(f, *v.Request))
		} else {
			f.Add(unhex(f, *v.Reply))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if least, asked, err := abi.ParseExchange(b); err == nil {
			again := abi.AppendLeast(nil, least)
			for _, a := range asked {
				if before := len(again); len(a.Append(again)) != before+a.Bytes() {
					t.Error("an item is not as long as it says")
				}
				again = a.Append(again)
			}
			if !bytes.Equal(again, b) {
				t.Errorf("% x becomes % x", b, again)
			}
		}
		if answers, err := answersOf(b); err == nil {
			var again []byte
			for _, a := range answers {
				again = a.Append(again)
			}
			if !bytes.Equal(again, b) {
				t.Errorf("% x becomes % x", b, again)
			}
		}
	})
}
