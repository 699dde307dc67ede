package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// ErrRolledBack is returned to a run whose acknowledged commits the server has lost, for example after a switch to a
// standby that had not received them.
var ErrRolledBack = errors.New(
	"the database has lost commits that it had acknowledged; run again, the connector fetches what is missing")

// Error codes of the server that the package examines.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	noTable    = "42P01"
	noRight    = "42501"
	diskFull   = "53100"
	tookLong   = "57014"
	noLock     = "55P03"
	serialized = "40"
)

// A fault is an error of the server or the connection to it, worded for the owner. It does not wrap the driver's error,
// which may contain the connection's configuration including the password.
type fault struct {
	sentence string
	code     string // of the server; "" for a connection error
	passing  bool   // may resolve itself, so trying again makes sense
}

func (f *fault) Error() string { return f.sentence }

// Is reports whether target is ErrNoSpace and the server's disk is full, or target is ErrUnavailable and the fault may
// resolve itself.
func (f *fault) Is(target error) bool {
	return target == store.ErrNoSpace && f.code == diskFull || target == store.ErrUnavailable && f.passing
}

// sentences maps error codes of the server, or classes of them, to the beginning of the message.
var sentences = map[string]string{
	"08":     "the connection to the database broke",
	"25006":  "the database takes no changes, as a standby does",
	"28":     "the database does not let the user in",
	"28P01":  "the database refused the password",
	"3D000":  "the server has no such database",
	"40":     "another transaction was in the way",
	noRight:  "the user lacks a right in the database",
	"53":     "the database server lacks something",
	diskFull: "the disk of the database server is full",
	"53300":  "the database server has no connection left",
	noLock:   "somebody holds a table or a row of the database locked",
	tookLong: "the database took too long and was stopped",
	"57P01":  "the database server ended the connection",
	"57P02":  "the database server crashed",
	"57P03":  "the database server takes no connections yet",
	"58":     "the database server has a fault of its system",
	"XX":     "the database has a fault",
}

// told converts an error of the driver to a *fault, or to ctx's error. It returns other errors as they are.
func (s *db) told(ctx context.Context, err error) error {
	var f *fault
	var said *pgconn.PgError
	var connecting *pgconn.ConnectError
	var timeout net.Error
	switch {
	case err == nil, errors.As(err, &f):
		return err
	case errors.As(err, &said):
		return s.saidBy(said)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &connecting), errors.As(err, &timeout), broken(err):
		return &fault{sentence: s.unreached(err), passing: true}
	}
	return err
}

// broken reports whether an error says that a connection has ended.
func broken(err error) bool {
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE,
		pgconn.ErrConnClosed} {
		if errors.Is(err, ended) {
			return true
		}
	}
	return strings.Contains(err.Error(), "conn closed")
}

// saidBy converts an error of the server to a fault with its message, but without its detail, which contains data.
func (s *db) saidBy(e *pgconn.PgError) *fault {
	class := e.Code[:min(2, len(e.Code))]
	sentence, known := sentences[e.Code]
	if !known {
		sentence, known = sentences[class]
	}
	if !known {
		sentence = "the database refused"
	}
	f := &fault{sentence: fmt.Sprintf("%s (%s)", sentence, s.clean(e.Message)), code: e.Code}
	switch {
	case class == serialized, class == "08", class == "53", class == "58", e.Code == noLock, e.Code == tookLong,
		strings.HasPrefix(e.Code, "57P"), e.Code == "25006":
		f.passing = true
	}
	return f
}

func (s *db) clean(text string) string {
	if p := s.address.config.Password; p != "" {
		text = strings.ReplaceAll(text, p, "…")
	}
	return abi.Cut(abi.Clean(text), 300)
}

// unreached returns a sentence for a connection error.
func (s *db) unreached(err error) string {
	_, at := pgconn.NetworkAddress(s.address.config.Host, s.address.config.Port)
	at = abi.Clean(at)
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case strings.Contains(err.Error(), "refused TLS"):
		return "the database server at " + at + " has no TLS"
	case errors.As(err, &certificate):
		return "the certificate of the database server at " + at +
			" is not one to trust; sslrootcert in the URL names the authority that signed it"
	case errors.As(err, &name):
		return "there is no host of the name " + abi.Clean(name.Name)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return "no database server listens at " + at
	case errors.Is(err, os.ErrPermission):
		return "the socket of the database server at " + at + " may not be used by the user that Sluice runs as"
	}
	return "the connection to the database server at " + at + " broke or never was"
}

// passes reports whether the cause of an error may resolve itself.
func passes(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.passing
}

// code returns the server's error code, or "" if err has none.
func code(err error) string {
	var f *fault
	if errors.As(err, &f) {
		return f.code
	}
	return ""
}

// missing returns err or, if that is nil, ErrNotFound for the thing named.
func missing(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format+": %w", append(args, store.ErrNotFound)...)
}

// An inUse error names the process that already runs as this host. It wraps a *store.BusyError.
type inUse struct{ store.BusyError }

func (e *inUse) Error() string {
	return fmt.Sprintf(
		"the database %s is in use by %s, which is this host already; each host wants a data directory of its own, named with data=DIR in the URL", e.Dir, e.Host)
}

func (e *inUse) Unwrap() error { return &e.BusyError }
