// Command helped opens a page that only its owner can pass, asks for help, and reports
// what it saw before, during and after that.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

const message = "The bank asks whether you are a human. Sign in, please."

// A visitor is one run.
type visitor struct {
	run     *guest.Run
	browser *guest.Browser
}

func collect(ctx context.Context, run *guest.Run) error {
	var s struct{ Site, Asks string }
	if err := run.Config(&s); err != nil {
		return guest.Fail("settings_invalid", false, guest.NotRetriable, "read settings: %w", err)
	}
	v := visitor{run, run.Browser()}
	if s.Asks == "nowhere" { // nothing was opened
		return v.told("asked", run.ManualAction(ctx, message))
	}
	if _, err := v.browser.Open(ctx, s.Site+"/login", guest.Ephemeral(), guest.Viewport(1280, 720)); err != nil {
		return err
	}
	user, err := v.browser.WaitFor(ctx, guest.ByLabel("User name"), "visible", 10*time.Second)
	if err != nil {
		return err
	}
	switch s.Asks {
	case "otp":
		_, err = run.OTP(ctx, "The bank sent a code to your phone.")
	case "assistance":
		err = v.watch(ctx)
	default:
		err = run.ManualAction(ctx, message)
	}
	if err := v.told("asked", err); err != nil {
		return err
	}
	state, err := v.browser.Text(ctx, guest.ByID("state"))
	if err == nil {
		err = v.emit("state", state)
	}
	if err := v.told("read", err); err != nil {
		return err
	}
	_, err = v.browser.Hover(ctx, guest.ByElement(user.ID), guest.Rebound(false), guest.NoRecovery())
	return v.told("stale", err)
}

// watch reports that the owner is needed and keeps looking, as far as the host lets it.
func (v visitor) watch(ctx context.Context) error {
	id, err := v.run.Assist(guest.Assistance{
		Posture: guest.PostureBlocked, Action: guest.ActionOperateAttachment, Message: message,
		Attachments: []abi.Attachment{{Kind: "browser_surface", Role: "streaming_companion"}},
	})
	if err != nil {
		return err
	}
	refused := false
	for {
		code := v.look(ctx)
		if code == "owner_in_control" && !refused {
			refused = true
			if err := v.emit("refused", code); err != nil {
				return err
			}
		}
		if code == "surface_lost" {
			return v.run.AssistStatus(id, guest.Cancelled, "")
		}
		if text, err := v.browser.Text(ctx, guest.ByID("state")); err == nil && text != "" && refused {
			return v.run.AssistStatus(id, guest.Resolved, "")
		}
		time.Sleep(150 * time.Millisecond)
	}
}

// look tries to read the password and to take a picture of the page. It emits any
// password that it gets, and the reason why it got no picture.
func (v visitor) look(ctx context.Context) string {
	if text, err := v.browser.Value(ctx, guest.ByLabel("Password")); err == nil && text != "" {
		_ = v.emit("password", text) // the test looks for it
	}
	_, err := v.browser.Screenshot(ctx)
	return codeOf(err)
}

// told records how a step ended. What the page or its owner did does not fail the run.
func (v visitor) told(step string, err error) error {
	return v.emit(step, codeOf(err))
}

func codeOf(err error) string {
	var a *guest.ActionError
	var c *guest.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &a):
		return a.Action.Code
	case errors.As(err, &c):
		return c.Code
	}
	return err.Error()
}

func (v visitor) emit(id, text string) error {
	return v.run.Emit("seen", id, map[string]any{"id": id, "text": text})
}
