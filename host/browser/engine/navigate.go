package engine

import (
	"github.com/sluicehost/sluice/host/browser/action"
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
		release, err := a.login(r)
		if err != nil || a.refused != nil {
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

// login has the browser answer the server of the address, with values that may go there.
func (a *act) login(r action.NavigateArgs) (release func(), err error) {
	to := origin(r.URL)
	var text [2]string
	for i, v := range []action.Value{r.Auth.Username, r.Auth.Password} {
		if text[i] = v.Plain; v.Sealed == "" {
			continue
		}
		if a.opt.Secrets == nil {
			a.refused = &action.Refusal{Code: "sealed_handle_unknown", Message: "the run holds no sealed values", Verb: a.req.Verb}
			return nil, nil
		}
		if text[i], a.refused = a.opt.Secrets.Login(v.Sealed, to); a.refused != nil {
			a.refused.Verb = a.req.Verb
			return nil, nil
		}
	}
	return a.tab.Login(a.ctx, to, text[0], text[1])
}

func navigateTell(a *act) {
	n, _ := a.work.(page.Navigation)
	a.details["url_host"], a.details["status"] = n.Host, n.Status
	a.details["same_document"], a.details["redirects"] = n.SameDocument, n.Redirects
}
