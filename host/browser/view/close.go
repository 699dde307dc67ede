package view

// Codes with which connections are closed (B212).
const (
	CloseDone         = 1000 // bye, revoked, or what was to be done is over
	CloseGoing        = 1001 // the host stops
	CloseTooBig       = 1009
	CloseBusy         = 1013 // too many viewers
	CloseInvalidToken = 4401
	CloseForbidden    = 4403
	CloseExpired      = 4410
)

// Reasons with which they are closed, beside those that Run's methods are given.
const (
	ReasonInvalidToken = "invalid_token"
	ReasonExpired      = "session_expired"
	ReasonForeign      = "wrong_run_or_interaction"
	ReasonSuperseded   = "superseded"
	ReasonRevoked      = "revoked"
	ReasonBye          = "bye"
	ReasonReplaced     = "connected_elsewhere"
	ReasonEnded        = "interaction_ended"
	ReasonLost         = "surface_lost"
	ReasonStopping     = "host_stopping"
	ReasonCrowded      = "too_many_viewers"
	ReasonSlow         = "too_slow"
)
