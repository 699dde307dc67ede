package main

import (
	"context"
	"errors"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var (
	cookies  = guest.ByRole("dialog", "Cookies")
	heading  = guest.ByRole("heading", "Accounts")
	trouble  = guest.ByRole("alert", "")
	password = guest.ByLabel("Password")
	code     = guest.ByLabel("Code")
)

// signIn opens the page of the accounts. A profile that is still signed in gets there
// at once.
func (t *teller) signIn(ctx context.Context) error {
	if err := t.step(ctx, "Opening the bank", false); err != nil {
		return err
	}
	if _, err := t.browser.Navigate(ctx, t.settings.site+"/accounts"); err != nil {
		return err
	}
	if err := t.browser.Expect(ctx, guest.URLContains("/accounts"), 0); err == nil {
		return t.step(ctx, "Signed in already", true)
	} else if !errors.Is(err, guest.ErrPage) {
		return err
	}
	if err := t.login(ctx); err != nil {
		return err
	}
	if err := t.confirm(ctx); err != nil {
		return err
	}
	return t.step(ctx, "Signed in", true)
}

// login fills in the form, behind the notice about cookies. The password is a
// handle: the host puts it in, and only at the origin that the owner named.
func (t *teller) login(ctx context.Context) error {
	b := t.browser
	if _, err := b.Click(ctx, guest.ByRole("button", "Accept"), guest.Expecting(guest.Gone(cookies))); err != nil {
		return changed("the notice about cookies", err)
	}
	if _, err := b.Fill(ctx, guest.ByLabel("User name"), t.settings.user); err != nil {
		return changed("the field for the user name", err)
	}
	if _, err := b.Fill(ctx, password, t.settings.password); err != nil {
		return changed("the field for the password", err)
	}
	if err := t.step(ctx, "Signing in", false); err != nil {
		return err
	}
	there := guest.Any(guest.Exists(code), guest.IsVisible(heading), guest.IsVisible(trouble))
	if _, err := b.Click(ctx, guest.ByRole("button", "Sign in"), guest.Declared("sign-in"),
		guest.Expecting(there)); err != nil {
		return changed("the page after signing in", err)
	}
	return t.accepted(ctx)
}

// confirm asks the owner for the code that the bank sent.
func (t *teller) confirm(ctx context.Context) error {
	answer, err := t.run.OTP(ctx, "The bank sent a code to your phone.")
	if err != nil {
		return err
	}
	if _, err := t.browser.Fill(ctx, code, strings.TrimSpace(answer)); err != nil {
		return changed("the field for the code", err)
	}
	there := guest.Any(guest.IsVisible(heading), guest.IsVisible(trouble))
	if _, err := t.browser.Click(ctx, guest.ByRole("button", "Confirm"), guest.Declared("confirm-code"),
		guest.Expecting(there)); err != nil {
		return changed("the page after the code", err)
	}
	return t.accepted(ctx)
}

// accepted looks for the bank's complaint.
func (t *teller) accepted(ctx context.Context) error {
	switch err := t.browser.Expect(ctx, guest.Gone(trouble), 0); {
	case err == nil:
		return nil
	case errors.Is(err, guest.ErrPage):
		return guest.Fail("sign_in_refused", false, guest.NotRetriable, "the bank refuses to sign in")
	default:
		return err
	}
}
