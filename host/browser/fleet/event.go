package fleet

// An Event is one step in the life of a surface, for the timeline of its run
// (B167). It has no addresses, process ids or paths.
type Event struct {
	Type     string // run.browser_surface_requested, _queued, _starting, _ready, _probe_failed, _failed or _released
	ID       string // of the surface
	Profile  string
	Code     string // why, where there is a why
	Restored bool   // the profile is the copy of before (B184)
	Probe    *Probe
}

// The types of events.
const (
	EventRequested   = "run.browser_surface_requested"
	EventQueued      = "run.browser_surface_queued"
	EventStarting    = "run.browser_surface_starting"
	EventReady       = "run.browser_surface_ready"
	EventProbeFailed = "run.browser_surface_probe_failed"
	EventFailed      = "run.browser_surface_failed"
	EventReleased    = "run.browser_surface_released"
)
