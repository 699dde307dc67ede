package web_test

import (
	"net"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/web"
)

// An App that is shut down before, or while, it begins to serve ends.
func TestShutdownBeforeServe(t *testing.T) {
	for range 200 {
		app := web.New(web.Options{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- app.Serve(l) }()
		if err := app.Shutdown(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("still serving")
		}
	}
}
