package fleet

import "github.com/sluicehost/sluice/host/browser/chromium"

// A Probe says whether a browser and its page answer (B206). Detail is written by
// the host: at most 200 characters without addresses, paths or process ids.
type Probe struct {
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// The codes of B206, and why a surface that never was cannot be shown (R122).
const (
	CodeNotReady     = chromium.CodeNotReady
	CodeUnreachable  = chromium.CodeUnreachable
	CodeDisconnected = chromium.CodeDisconnected
	CodePageStale    = chromium.CodePageStale
	CodeTimeout      = chromium.CodeTimeout
	CodeNoSurface    = "no_surface_registered"
	CodeStartFailed  = "surface_start_failed"
)
