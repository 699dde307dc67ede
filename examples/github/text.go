package main

import (
	"time"

	"github.com/google/go-github/v88/github"
)

// moment is a time that a record can hold, or null.
func moment(t *github.Timestamp) *string {
	if t == nil || t.IsZero() || t.UTC().Year() < 0 || t.UTC().Year() > 9999 {
		return nil
	}
	text := t.UTC().Format(time.RFC3339)
	return &text
}

// text is null for "".
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// or is "" for null.
func or(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// login is null for a deleted account.
func login(u *github.User) *string {
	if u == nil {
		return nil
	}
	return u.Login
}

func logins(users []*github.User) []string {
	out := []string{}
	for _, u := range users {
		if name := login(u); name != nil {
			out = append(out, *name)
		}
	}
	return out
}

func labels(all []*github.Label) []string {
	out := []string{}
	for _, l := range all {
		if l != nil {
			out = append(out, l.GetName())
		}
	}
	return out
}

func texts(all []string) []string { return append([]string{}, all...) }
