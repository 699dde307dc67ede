package app

import (
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/worker"
)

// A Version describes a build of this program.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Engine   string `json:"engine"`
	ABI      string `json:"abi"`
	Cgo      bool   `json:"cgo"` // built with cgo, which leaves out one layer of the jail
}

// ThisVersion returns the version of the running program.
func ThisVersion() Version {
	v := Version{
		Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Engine: worker.EngineVersion(), ABI: strconv.Itoa(abi.Major) + "." + strconv.Itoa(abi.Minor),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "CGO_ENABLED":
			v.Cgo = s.Value == "1"
		}
	}
	return v
}
