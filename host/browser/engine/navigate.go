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

func navigateTell(a *act) {
	n, _ := a.work.(page.Navigation)
	a.details["url_host"], a.details["status"] = n.Host, n.Status
	a.details["same_document"], a.details["redirects"] = n.SameDocument, n.Redirects
}
