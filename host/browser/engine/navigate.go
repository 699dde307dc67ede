package engine

import (
	"github.com/sluicehost/sluice/host/browser/page"
)

func navigateSend(a *act) (page.Delivery, error) {
	r := a.req.Navigate
	if r.URL != "" && a.opt.AllowURL != nil {
		if err := a.opt.AllowURL(r.URL); err != nil {
			return page.Delivery{}, err
		}
	}
	until := r.Until
	if until == "" {
		until = "dom"
	}
	if r.Auth != nil {
		release, err := a.tab.Login(a.ctx, origin(r.URL), a.login[0], a.login[1])
		if err != nil {
			return page.Delivery{}, err
		}
		defer release()
	}
	var n page.Navigation
	var err error
	if r.URL != "" {
		n, err = a.tab.Navigate(a.ctx, r.URL, until)
	} else {
		n, err = a.tab.History(a.ctx, r.History, until)
	}
	a.work = n
	return page.Delivery{Sent: err == nil || !unsent(err), Trusted: -1}, err
}

// identify settles the login for an address before anything is done, of values that may
// go there.
func (a *act) identify() *Refusal {
	auth := a.req.Navigate.Auth
	if a.req.Verb != Navigate || auth == nil {
		return nil
	}
	var handles []string
	for i, v := range []Value{auth.Username, auth.Password} {
		if a.login[i] = v.Plain; v.Sealed != "" {
			handles = append(handles, v.Sealed)
		}
	}
	if len(handles) == 0 {
		return nil
	}
	if a.opt.Secrets == nil {
		return &Refusal{Code: "sealed_handle_unknown", Message: "the run holds no sealed values", Verb: a.req.Verb}
	}
	values, refused := a.opt.Secrets.Login(origin(a.req.Navigate.URL), handles...)
	if refused != nil {
		refused.Verb = a.req.Verb
		return refused
	}
	for i, v := range []Value{auth.Username, auth.Password} {
		if v.Sealed != "" {
			a.login[i], values = values[0], values[1:]
		}
	}
	return nil
}

func navigateTell(a *act) {
	n, _ := a.work.(page.Navigation)
	a.details["url_host"], a.details["status"] = n.Host, n.Status
	a.details["same_document"], a.details["redirects"] = n.SameDocument, n.Redirects
}
