package main

import (
	"context"
	"fmt"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Questions wait for their answer. The connector stands still meanwhile
// and nothing that it has emitted is lost.

func (a *asker) otp(ctx context.Context, q question) (outcome, error) {
	code, err := a.run.OTP(ctx, q.Message, q.options()...)
	if err != nil {
		return declined(err)
	}
	o := outcome{Outcome: "given"}
	if code != "" {
		o.Given = []string{"code"}
	}
	return o, nil
}

func (a *asker) credentials(ctx context.Context, q question) (outcome, error) {
	login, err := a.run.Credentials(ctx, q.Message, q.options()...)
	if err != nil {
		return declined(err)
	}
	o := outcome{Outcome: "given"}
	for _, name := range []string{"username", "password"} {
		if login.Answer.Has(name) {
			o.Given = append(o.Given, name)
		}
		if login.Answer.Sealed(name) {
			o.Sealed = append(o.Sealed, name)
		}
	}
	return o, nil
}

func (a *asker) manualAction(ctx context.Context, q question) (outcome, error) {
	if err := a.run.ManualAction(ctx, q.Message, q.options()...); err != nil {
		return declined(err)
	}
	return outcome{Outcome: "done"}, nil
}

func (a *asker) approval(ctx context.Context, q question) (outcome, error) {
	d, err := a.run.Approve(ctx, q.Message, q.options()...)
	if err != nil {
		return declined(err)
	}
	o := outcome{Outcome: "rejected", Text: d.Comment}
	switch {
	case d.Refine: // a connector with something to change would, and ask again
		o.Outcome = "to be refined"
	case d.Edited != "":
		o.Outcome, o.Text = "accepted", d.Edited
	case d.Accepted:
		o.Outcome = "accepted"
	}
	return o, nil
}

func (a *asker) clarification(ctx context.Context, q question) (outcome, error) {
	field := guest.Field{Name: "answer", Title: "Your answer", Enum: q.Choices}
	if q.File != "" {
		field.Format, field.Accept = "file", q.File
	}
	answer, err := a.run.Clarify(ctx, q.Message, append(q.options(), guest.Form(field))...)
	if err != nil {
		return declined(err)
	}
	o := outcome{Outcome: "given", Given: []string{"answer"}, Text: answer.Text("answer")}
	if q.File != "" {
		f, err := answer.File("answer")
		if err != nil {
			return outcome{}, err
		}
		o.Text = fmt.Sprintf("%s, %d bytes", f.Name, len(f.Data))
	}
	return o, nil
}
