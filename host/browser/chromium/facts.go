package chromium

import (
	"context"
	"os"
)

// Facts are what health and doctor say of the browsers of this host. Path is for the
// operator alone.
type Facts struct {
	Path    string
	Product string
	Version string
	Shell   bool
	// UID is "own" where each browser has one, or "shared" with the host (B175).
	UID string
	// Sandbox is "on", or says which wall was not seen to stand (B176).
	Sandbox string
	// Egress is "namespace" or "flags" (B248).
	Egress string
	// Undecodable counts the events that the library has no name for, or could not
	// read (B179).
	Undecodable int64
}

// Facts are those of this browser; they may be asked for at any time.
func (b *Browser) Facts() Facts {
	f := Facts{
		Path: b.options.Binary.Path, Product: b.options.Binary.Product, Version: b.options.Binary.Version,
		Shell: b.options.Binary.Shell, UID: "shared", Sandbox: b.sandbox.String(), Egress: ModeFlags, Undecodable: b.wire.undecodable.Load(),
	}
	if b.options.UID != os.Geteuid() && b.options.UID != 0 {
		f.UID = "own"
	}
	if b.options.Namespace {
		f.Egress = ModeNamespace
	}
	return f
}

// Check starts a browser, as doctor does, and ends it again.
func Check(ctx context.Context, o Options) (Facts, error) {
	b, err := Start(ctx, o)
	if err != nil {
		return Facts{}, err
	}
	facts := b.Facts()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*gracefulLimit)
	defer cancel()
	return facts, b.Close(ctx)
}
