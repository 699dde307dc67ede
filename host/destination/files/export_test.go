package files

import (
	"time"

	"github.com/sluicehost/sluice/host/destination"
)

// SetHook has do called between any two things that are done to the disk.
func SetHook(do func(point string) error) { hook = do }

// Unhook undoes SetHook.
func Unhook() { hook = func(string) error { return nil } }

// FolderName is folderName.
func FolderName(text string) string { return folderName(text, map[string]bool{}) }

// CompactAt has the file of keys written anew from so many bytes of garbage on, until the returned function is called.
func CompactAt(bytes int64) func() {
	was := minGarbage
	minGarbage = bytes
	return func() { minGarbage = was }
}

// BusyAfter bounds how long a step waits for the lock, until the returned function is called.
func BusyAfter(d time.Duration) func() {
	was := busy
	busy = d
	return func() { busy = was }
}

// KeyBytes returns the size of the file of keys.
func KeyBytes(s destination.Sink) int64 { return s.(*Sink).index.end }
