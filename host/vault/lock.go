package vault

// A lockKind is how much of a vault a lock keeps others from.
type lockKind int

const (
	shared    lockKind = iota // others may read
	exclusive                 // others wait
)
