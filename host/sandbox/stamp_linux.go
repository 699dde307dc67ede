package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// A stamp changes when a file does: inode, size, change time.
type stamp struct {
	inode   uint64
	size    int64
	changed syscall.Timespec
}

func stampOf(path string) (stamp, error) {
	var s syscall.Stat_t
	if err := syscall.Lstat(path, &s); err != nil {
		return stamp{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stamp{inode: s.Ino, size: s.Size, changed: s.Ctim}, nil
}

// machine names what compiled code depends on besides the engine: architecture and CPU features. The engine puts its
// own view of them into its file names, so if two different machines look alike here, loading fails and the code is
// compiled again.
var machine = sync.OnceValue(func() string {
	name := runtime.GOOS + "/" + runtime.GOARCH
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return name
	}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		switch string(bytes.TrimSpace(key)) {
		case "flags", "Features":
			sum := sha256.Sum256(bytes.TrimSpace(value))
			return fmt.Sprintf("%s %s", name, hex.EncodeToString(sum[:8]))
		}
	}
	return name
})
