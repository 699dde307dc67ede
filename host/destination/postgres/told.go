package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// Error codes of the server that the package examines. https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	uniqueViolation = "23505"
	noRight         = "42501"
)

// blocking lists the classes of codes that concern one table or its rows.
var blocking = []string{"0A", "21", "22", "23", "2B", "42", "54"}

// A refusal is an error that is already worded for the owner.
type refusal string

func (r refusal) Error() string { return string(r) }

// told converts an error to one for the owner. It does not wrap errors of the driver, which may contain the
// connection's configuration including the password.
func (s *Sink) told(ctx context.Context, err error) error {
	var r refusal
	var b destination.Blocked
	var said *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return r
	case errors.As(err, &b):
		return b
	case errors.Is(err, destination.ErrFenced), errors.Is(err, destination.ErrClaimed),
		errors.Is(err, destination.ErrForeign):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &said) && slices.Contains(blocking, said.Code[:min(2, len(said.Code))]):
		return destination.Blocked(s.saidBy(said))
	case errors.As(err, &said):
		return refusal(s.saidBy(said))
	}
	return refusal(s.broken(err))
}

// mayNot replaces an error about a missing right with one that has the statement to grant it.
func (s *Sink) mayNot(err error, what, statement string) error {
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == noRight {
		return refusal(abi.Clean(fmt.Sprintf("the user %s may not %s; an administrator of the database %s can run: %s",
			s.address.config.User, what, s.address.config.Database, statement)))
	}
	return err
}

// missing finds what a right is missing on, in a message of a server that speaks English.
var missing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:for|of|in) (table|relation|database) "?(.+?)"?$`)
})

// lost returns the sentence about a right that the user had when the destination was opened.
func (s *Sink) lost(e *pgconn.PgError) string {
	user, schema := quote(s.address.config.User), quote(s.address.schema)
	statement := "GRANT USAGE, CREATE ON SCHEMA " + schema + " TO " + user
	switch m := missing().FindStringSubmatch(e.Message); {
	case m == nil:
	case m[1] == "database":
		statement = "GRANT CONNECT, TEMPORARY ON DATABASE " + quote(m[2]) + " TO " + user
	default:
		statement = "ALTER TABLE " + s.in(m[2]) + " OWNER TO " + user
	}
	return fmt.Sprintf("the user %s lacks a right that it had (%s); an administrator of the database %s can run: %s",
		s.clean(s.address.config.User), s.clean(e.Message), s.clean(s.address.config.Database), s.clean(statement))
}

// sentences maps error codes of the server, or classes of them, to the beginning of the message.
var sentences = map[string]string{
	"08":    "the connection to the server broke",
	"0A000": "the server does not do that",
	"22P05": "the database cannot hold a character of these records",
	"25006": "the server takes no changes, as a standby does",
	"28":    "the server does not let the user in",
	"28P01": "the server refused the password",
	"2BP01": "something else in the database depends on the table; drop that first",
	"3D000": "the server has no such database",
	"40":    "another transaction was in the way",
	"42":    "somebody changed the table; rebuild the destination",
	"42P07": "there is something of that name already",
	"53":    "the server lacks something",
	"53100": "the disk of the server is full",
	"53200": "the server has no memory left",
	"53300": "the server has no connection left",
	"54":    "that is more than the server can hold",
	"55006": "another program uses the table",
	"55P03": "another program holds the table or the fence locked",
	"57014": "the server took too long and was stopped",
	"57P01": "the server is shutting down",
	"57P02": "the server crashed",
	"57P03": "the server takes no connections yet",
	"57P05": "the server closed an idle connection",
	"58":    "the server has a fault of its system",
	"XX":    "the server has a fault",
}

// saidBy returns a sentence with the server's message. The detail is only included where it names what depends on a
// table, because otherwise it contains data of records.
func (s *Sink) saidBy(e *pgconn.PgError) string {
	if e.Code == noRight {
		return s.lost(e)
	}
	sentence, known := sentences[e.Code]
	if !known && len(e.Code) > 2 {
		sentence, known = sentences[e.Code[:2]]
	}
	if !known {
		sentence = "the server refused"
	}
	if e.Code == "0A000" && strings.Contains(e.Message, "used by a view") {
		sentence = "a view uses a column whose type has to change; drop the view first"
	}
	message := e.Message
	if e.Detail != "" && (e.Code == "0A000" || e.Code == "2BP01") {
		message += ": " + e.Detail
	}
	return fmt.Sprintf("%s (%s)", sentence, s.clean(message))
}

// clean returns the server's text for the owner, without passwords that may be in it.
func (s *Sink) clean(text string) string {
	for _, secret := range []string{s.address.config.Password, s.address.query.Get("sslpassword")} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	text = abi.Clean(text)
	if len(text) > 300 {
		text = cutText(text, 300) + "…"
	}
	return text
}

// broken returns a sentence for a connection error.
func (s *Sink) broken(err error) string {
	at := s.address.where()
	var name *net.DNSError
	var authority x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	text := err.Error()
	switch {
	case strings.Contains(text, "server refused TLS"):
		return "the server at " + at + " has no TLS; if the way to it is safe, add sslmode=disable to the URL"
	case errors.As(err, &authority), errors.As(err, &certificate):
		return "the certificate of the server at " + at +
			" is not one to trust; sslrootcert in the URL names the authority that signed it"
	case strings.Contains(text, "require_auth"), strings.Contains(text, "authentication method"):
		return "the server at " + at +
			" wants the password as it is, and the connection has no TLS; add sslmode=require to the URL"
	case errors.As(err, &name):
		return "there is no host of the name " + abi.Clean(name.Name)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return "no server listens at " + at
	case errors.Is(err, os.ErrPermission):
		return "the socket of the server at " + at + " may not be used by the user that Sluice runs as"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the server at " + at + " does not answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, pgconn.ErrConnClosed):
		return "the connection to the server at " + at + " broke"
	}
	return "the server at " + at + ": " + s.clean(strings.ReplaceAll(text, "\n", " "))
}
