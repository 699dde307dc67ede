//go:build !linux

package sandbox

import (
	"os"
	"runtime"
	"time"
)

// A stamp changes when a file does, as far as every system can tell.
type stamp struct {
	links    uint64
	size     int64
	modified time.Time
}

func stampOf(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{links: links(info), size: info.Size(), modified: info.ModTime()}, nil
}

// machine names what compiled code depends on besides the engine.
func machine() string { return runtime.GOOS + "/" + runtime.GOARCH }
