//go:build !wasip1

package main

import (
	_ "embed"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

const handle = "sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa"

// server is Radicale's page as a fake has it.
func server() *guesttest.Pages {
	return &guesttest.Pages{Load: func(url string) *guesttest.Page {
		if url != "https://dav.test/.web/" {
			return nil
		}
		page := &guesttest.Page{URL: url, Title: "Radicale Web Interface"}
		user := &guesttest.Element{Role: "textbox", Placeholder: "Username"}
		word := &guesttest.Element{Role: "textbox", Placeholder: "Password"}
		next := &guesttest.Element{Role: "button", Text: "Next"}
		next.OnClick = func(*guesttest.Pages) {
			if user.Value != "sam" || word.Value != handle {
				return
			}
			const each = "#collectionsscene article:not(.hidden) "
			page.Add(&guesttest.Element{Role: "heading", Text: "Collections"})
			for _, name := range []string{"Work", "Home"} {
				page.Add(&guesttest.Element{CSS: []string{each + "[data-name=title]"}, Text: name},
					&guesttest.Element{CSS: []string{each + "small"}, Text: "[calendar]"},
					&guesttest.Element{CSS: []string{each + "a[data-name=url]"}, Text: "https://dav.test/sam/" + name + "/"})
			}
		}
		page.Add(user, word, next)
		return page
	}}
}

func collected(t *testing.T, password string) *guesttest.Result {
	return guesttest.Run(t, connector, guesttest.Options{
		Manifest: manifest, Config: map[string]any{"url": "https://dav.test", "user": "sam"},
		Secrets: map[string]string{"password": password}, Browser: server().Call,
	})
}

func TestCollections(t *testing.T) {
	res := collected(t, handle)
	if res.Status != abi.Succeeded || len(res.Records[stream]) != 2 {
		t.Fatalf("%s %v\n%s", res.Status, res.Records, res.Transcript)
	}
}

func TestRefused(t *testing.T) {
	res := collected(t, "sluice-sealed-v1-bbbbbbbbbbbbbbbbbbbbbbbbbb")
	if res.Status != abi.Failed || res.Done == nil || res.Done.Error == nil || res.Done.Error.Code != "sign_in_refused" {
		t.Errorf("%s\n%s", res.Status, res.Transcript)
	}
}
