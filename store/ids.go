package store

// The named strings of the domain. They are types so that two of them cannot
// be swapped.
type (
	RunID        string // run_ and a ULID
	TraceID      string // trc_ and 16 hex digits
	EventID      string // evt_ and 16 hex digits
	ConnectorID  string // URL or slug
	ConnectionID string // slug, unique
	Stream       string // name of a stream declared in a manifest
	GrantID      string // "" is the owner's own collection, the global namespace
	Digest       string // "sha256:" and 64 hex digits
)
