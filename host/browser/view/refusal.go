package view

// A Refusal is why a view was not minted; Code is one of B209 or rate_limited.
// Message is for people and holds nothing of the page.
type Refusal struct {
	Code    string
	Message string
}

func (e *Refusal) Error() string { return e.Code + ": " + e.Message }

func refuse(code, message string) error { return &Refusal{Code: code, Message: message} }

// Codes of refusals (B209).
const (
	CodeRequest     = "invalid_request"
	CodeNoPending   = "no_pending_interaction"
	CodeMismatch    = "interaction_id_mismatch"
	CodeKind        = "stream_not_supported_for_kind"
	CodeUnavailable = "browser_surface_unavailable"
	CodeLimited     = "rate_limited"
)
