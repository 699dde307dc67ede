//go:build !wasip1

package guesthttp_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

// A fake is a host that says what it is told to, and counts.
type fake struct {
	reply   string
	refused error
	body    []byte // what reads return, piece by piece
	piece   int    // the most that one read returns; 0 for no bound
	broken  error  // of a read after body
	excess  int    // added to what a read says it read

	head                    string // of the last request
	sent                    []byte // and its body
	requests, reads, closes int
	closed                  int32 // the handle that was closed last
}

var _ guesthttp.Host = (*fake)(nil)

func (f *fake) NetworkRequest(frame []byte) ([]byte, error) {
	f.requests++
	n := binary.LittleEndian.Uint32(frame)
	f.head, f.sent = string(frame[4:4+n]), bytes.Clone(frame[4+n:])
	return []byte(f.reply), f.refused
}

func (f *fake) ReadHandle(_ int32, dst []byte) (int, error) {
	f.reads++
	if f.piece > 0 {
		dst = dst[:min(f.piece, len(dst))]
	}
	n := copy(dst, f.body)
	f.body = f.body[n:]
	if n == 0 {
		return f.excess, f.broken
	}
	return n + f.excess, nil
}

func (f *fake) CloseHandle(handle int32) error {
	f.closes++
	f.closed = handle
	return nil
}

const ok = `{"handle":7,"status":200,"headers":[],"url":"https://h.example/","redirects":0}`

// sentHead is the head of the last request, decoded.
func (f *fake) sentHead(t *testing.T) map[string]any {
	t.Helper()
	if _, err := strictjson.Parse([]byte(f.head), strictjson.ParseOptions{}); err != nil {
		t.Errorf("the host refuses the head %s: %v", f.head, err)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(f.head), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func refuses(errno abi.Errno, code string) *fake {
	return &fake{refused: guest.NewError(errno, code, "as told")}
}
