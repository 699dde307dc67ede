//go:build !unix

package server

import "errors"

func (*Server) ordinary() error {
	return errors.New("a server of one's own needs a Unix system; name a database with --store postgres://…")
}

func (*Server) own(string) error { return nil }
