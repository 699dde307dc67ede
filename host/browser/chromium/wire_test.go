package chromium_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// Events without a name here are counted, each time; answers are not events,
// and what browsers send beside its successor is no news.
func TestUndecodableEventsAreCounted(t *testing.T) {
	stream := strings.Join([]string{
		`{"method":"Target.targetDestroyed","params":{"targetId":"1"}}`,
		`{"id":1,"result":{"new":"member"}}`,
		`{"method":"Future.happened","params":{}}`,
		`{"method":"Future.happened","sessionId":"s","params":{}}`,
		`{"method":"Page.frameScheduledNavigation","sessionId":"s","params":{"frameId":"f","delay":0,"reason":"scriptInitiated","url":"http://a.test/"}}`,
		`{"method":"Page.frameClearedScheduledNavigation","sessionId":"s","params":{"frameId":"f"}}`,
		`{"method":"Page.loadEventFired","sessionId":"s","params":{"timestamp":1}}`,
	}, "\x00") + "\x00"
	n, err := chromium.Heard(t.Context(), io.NopCloser(strings.NewReader(stream)))
	if n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v; want 2", n, err)
	}
}

// A message without an end does not fill the host's memory.
func TestEndlessMessage(t *testing.T) {
	n, err := chromium.Heard(t.Context(), io.NopCloser(endless{}))
	if err == nil || !strings.Contains(err.Error(), "too long") || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	long := `{"id":1,"result":{"data":"` + strings.Repeat("x", 20<<20) + `"}}` + "\x00"
	if _, err := chromium.Heard(t.Context(), io.NopCloser(strings.NewReader(strings.Repeat(long, 8)))); !errors.Is(err,
		io.EOF) {
		t.Errorf("many long ones: %v", err)
	}
}

// endless is a browser that begins a message and does not end it.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
