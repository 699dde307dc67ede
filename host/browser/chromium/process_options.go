package chromium

import (
	"log/slog"
	"os/exec"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Options say how one browser is started, and what its tabs may do.
type Options struct {
	Binary Binary // as Find gave it
	// Profile is the directory of the browser's data and Home what it takes for its
	// home; both are absolute, exist, are not shared with another browser, and the
	// caller holds the profile's lock until Close has returned (B183). Start gives
	// both to UID with mode 0700.
	Profile string
	Home    string
	// UID and GID are who the browser is. A host that is root must give a pair that
	// no other live browser has: at the end, whatever runs under it is killed (B175,
	// B178). Another host leaves both zero, and the browser runs as the host does.
	UID, GID int
	// Proxy is where all of its traffic goes, http://host:port.
	Proxy string
	// Wrap changes the command before it is started, to put it into a network
	// namespace of its own (B248); Namespace says that it does so. The process that
	// it starts must be the browser, or become it by exec. Attach is called with that
	// process's id as soon as there is one; an error ends it, and is ErrUnsafe.
	Wrap      func(*exec.Cmd) error
	Attach    func(pid int) error
	Namespace bool
	// AllowNoSandbox lets a browser live whose sandbox failed its self-test (B176).
	AllowNoSandbox bool
	Window         page.Viewport // of new tabs; zero is 1280 by 800
	// MaxTabs is how many tabs there may be, popups with them; 0 is 4.
	MaxTabs int
	// DenyPopups closes the tabs that pages open (B36).
	DenyPopups bool
	// Tabs are the options of each tab.
	Tabs TabOptions
	// Log is told what nobody else hears of. It holds the browser's own messages,
	// which are a stranger's. nil drops them.
	Log *slog.Logger

	scratch string // where its temporary files go
}
