package chromium

import (
	"os"
	"syscall"
)

func ownedBy(info os.FileInfo, uid, gid int) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == uid && int(s.Gid) == gid
}
