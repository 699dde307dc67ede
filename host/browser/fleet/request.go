package fleet

// A Request is what a run wants of a browser.
type Request struct {
	Connection string
	Profile    string // by B181; checked by Acquire before everything else
	Persistent bool
	Scheduled  bool // owner-started runs come first (B169)
	Kind       Kind
	// Bind gives a gate the policy of the run. It is called once for each gate that
	// the surface tries, before its browser can be reached by the run.
	Bind func(Gate) error
	// Event is told of each step, in order, from the goroutine of Acquire, of
	// Release, or one of the surface's own. It returns at once.
	Event func(Event)
	// Lost is told once that the surface is gone (B205), from a goroutine of the
	// surface's. It returns at once.
	Lost func(Probe)
}
