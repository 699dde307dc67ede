// Command fetch posts a text and expects it back.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(_ context.Context, run *guest.Run) error {
	guesthttp.Install(run)
	client := http.Client{Timeout: time.Minute}
	res, err := client.Post("https://h.example/echo", "text/plain", strings.NewReader("hello"))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && string(b) != "hello" {
		err = fmt.Errorf("got %q", b)
	}
	return err
}
