package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Stored is an authorization as a vault keeps it. It is only sent to the server, and for the
// client, for which it was made, whatever a manifest says later.
type Stored struct {
	Version      int       `json:"version"`
	RefreshToken string    `json:"refresh_token"`
	TokenURL     string    `json:"token_url"`
	ClientID     string    `json:"client_id"`
	Scopes       []string  `json:"scopes,omitempty"`
	ObtainedAt   time.Time `json:"obtained_at"`
}

const version = 1

// Printers and loggers see neither an authorization nor a client's secret.
func (Stored) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }
func (Stored) LogValue() slog.Value       { return slog.StringValue(redacted) }
func (Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }
func (Client) LogValue() slog.Value       { return slog.StringValue(redacted) }

const redacted = "[redacted]"

// Errors of what a vault holds instead.
var (
	ErrMissing = errors.New("not authorized")
	ErrOther   = errors.New("the authorization is for another server or client")
)

// Encode returns the stored form.
func (s Stored) Encode() ([]byte, error) {
	b, err := json.Marshal(s) // #nosec G117 -- what goes into the vault
	if err != nil {
		return nil, errors.New("encode authorization")
	}
	return b, nil
}

// ReadStored parses the result of Encode, or a plain refresh token that an owner has from
// elsewhere, of which only the token is known. The error does not contain the value.
func ReadStored(value []byte) (Stored, error) {
	if !bytes.HasPrefix(value, []byte("{")) {
		s := Stored{RefreshToken: string(value)}
		if !sendable(s.RefreshToken) {
			return Stored{}, fmt.Errorf("%w: what is stored is no refresh token", ErrMissing)
		}
		return s, nil
	}
	var s Stored
	if err := json.Unmarshal(value, &s); err != nil || s.Version != version ||
		!sendable(s.RefreshToken) || s.TokenURL == "" {
		return Stored{}, fmt.Errorf("%w: what is stored is not of this version", ErrMissing)
	}
	return s, nil
}

// For refuses an authorization that was made for another server, client or scope.
func (s Stored) For(o *abi.OAuth, client string) error {
	if s.Version == 0 {
		return nil // the owner said what it is for when storing it
	}
	if s.TokenURL != o.TokenURL || s.ClientID != client {
		return fmt.Errorf("%w: it is of %s", ErrOther, abi.Cut(abi.Clean(hostOf(s.TokenURL)), 100))
	}
	for _, scope := range o.Scopes {
		if !strings.Contains(" "+strings.Join(s.Scopes, " ")+" ", " "+scope+" ") {
			return fmt.Errorf("%w: it is not for the scope %s", ErrOther, scope)
		}
	}
	return nil
}
