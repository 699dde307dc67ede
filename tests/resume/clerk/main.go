// Clerk is a guest that does what a careful connector does: it logs in, keeps its session in a
// cookie, asks twice, and collects before, between and after. Its records hold the time and
// random numbers, which differ when anything is done differently.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

type settings struct {
	Server string `json:"server"`
	Pages  int    `json:"pages"` // only these, and no question; 0 for all
	// Computes has it make no more calls behind them, until it is stopped.
	Computes bool `json:"computes"`
}

type item struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	Nonce string `json:"nonce"`
	At    string `json:"at"`
}

func main() { guest.Main(guest.Connector{Collect: collect}) }

type clerk struct {
	run  *guest.Run
	lost int // requests whose answers nobody has
	settings
}

func collect(ctx context.Context, run *guest.Run) error {
	c := &clerk{run: run}
	if err := run.Config(&c.settings); err != nil {
		return err
	}
	if err := c.login(); err != nil {
		return err
	}
	if c.Pages > 0 {
		err := c.pages("a", c.Pages)
		for n := uint64(1); c.Computes && err == nil && n != 0; n += 2 { // for ever
		}
		return err
	}
	if err := c.pages("a", 3); err != nil {
		return err
	}
	time.Sleep(3 * time.Millisecond)
	a, err := run.Clarify(ctx, "Which season?", guest.Form(guest.Field{Name: "answer"}))
	if err != nil {
		return err
	}
	if err := c.ask("season", a.Text("answer")); err != nil {
		return err
	}
	if err := c.pages("b", 2); err != nil {
		return err
	}
	code, err := run.OTP(ctx, "Code?", guest.Timeout(time.Hour))
	if err != nil {
		return err
	}
	if err := c.ask("code", code); err != nil {
		return err
	}
	return c.pages("c", 2)
}

// login gets a session. Where it is not known whether it did, it does so once more.
func (c *clerk) login() error {
	for n := range 100 {
		path := "login"
		if n > 0 {
			path = fmt.Sprintf("%d/login", n)
		}
		lost := c.lost
		if err := c.ask(path, ""); err != nil || c.lost == lost {
			return err
		}
	}
	return nil
}

// pages collects n pages and keeps a cursor.
func (c *clerk) pages(name string, n int) error {
	for i := range n {
		if err := c.ask(fmt.Sprintf("%s/%d", name, i), ""); err != nil {
			return err
		}
	}
	return c.run.Checkpoint("items", map[string]string{"behind": name})
}

// ask fetches a path, each with a new number, and emits what it got. The server is told word.
func (c *clerk) ask(path, word string) error {
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return err
	}
	id := hex.EncodeToString(nonce[:])
	r, err := c.run.Fetch(guest.Request{URL: c.Server + "/" + path + "?nonce=" + id,
		Header: [][2]string{{"X-Word", word}}})
	var body []byte
	if err == nil {
		defer r.Body.Close()
		body, err = io.ReadAll(r.Body)
	}
	if e, ok := errors.AsType[*guest.Error](err); ok && (e.Code == "reply_lost" || e.Code == "broken_off") {
		c.lost++ // it is not asked for again: the server counts
		return c.run.Emit("items", path, item{path, "lost", id, time.Now().UTC().Format(time.RFC3339Nano)})
	}
	if err != nil {
		return err
	}
	if r.Status != 200 {
		return guest.Fail("refused", false, guest.NotRetriable, "%s: %d %s", path, r.Status, body)
	}
	return c.run.Emit("items", path, item{path, string(body), id, time.Now().UTC().Format(time.RFC3339Nano)})
}
