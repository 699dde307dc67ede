package network_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// TestBroken: a session that takes over from one whose process ended tells the guest of what was
// under way: the rest of a body broke off, and a request whose answer is lost is not made again.
func TestBroken(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	t.Cleanup(server.Close)
	s := network.NewSession(client(t, egress.Options{}))
	if err := s.RestoreState([]byte(`{"next": 9, "open": [4], "away": [2]}`)); err != nil {
		t.Fatal(err)
	}
	text, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, 4, 10))
	if errno != abi.EUNAVAIL || !strings.Contains(string(text), "broken_off") {
		t.Errorf("read on: %v %s", errno, text)
	}
	frame := []byte("{\"method\":\"POST\",\"url\":\"" + server.URL + "\"}\n")
	answers, errno := s.LostReply(abi.CallNetworkExchange,
		abi.ExchangeRequest{ID: 3, Frame: frame}.Append(abi.AppendLeast(nil, 1)))
	if errno != abi.OK {
		t.Fatalf("exchange: %v %s", errno, answers)
	}
	var lost []uint32
	for len(answers) > 0 {
		a, rest, err := abi.NextAnswer(answers)
		if err != nil || a.Errno != abi.EUNAVAIL || !strings.Contains(string(a.Reply), "reply_lost") {
			t.Fatalf("%+v %v", a, err)
		}
		lost, answers = append(lost, a.ID), rest
	}
	if !slices.Equal(lost, []uint32{2, 3}) || requests != 0 {
		t.Errorf("lost are %v, and %d requests were made", lost, requests)
	}
}
