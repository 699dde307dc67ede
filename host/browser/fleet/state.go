package fleet

// A State is where a surface is in its life (§6.1). It is computed from facts
// each time it is asked for, so that an event that was missed cannot leave a dead
// surface ready (B166).
type State string

// The states.
const (
	Requested    State = "requested"
	Starting     State = "starting"
	Establishing State = "establishing"
	Ready        State = "ready"
	OwnerControl State = "owner_control"
	Closing      State = "closing"
	Closed       State = "closed"
	Lost         State = "lost"
)
