package filesystem

import (
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
)

// A guestPath is a checked path relative to a root: no "..", no empty component, never
// absolute, "." for the root. No other paths reach os.Root.
type guestPath struct {
	name  string
	depth int  // components; 0 for the root
	slash bool // had a trailing slash, which requires a directory
}

// parsePath checks a path of the guest. It resolves "." and ".." lexically, as the guest's
// libraries do. A path that is too long, malformed or leads above the root is EDENIED, an
// empty one EINVAL.
//
// A trailing slash never reaches os.Root, because of CVE-2026-39822.
func parsePath(p string) (guestPath, error) {
	switch {
	case p == "":
		return guestPath{}, refuse(abi.EINVAL)
	case len(p) > abi.MaxFilePath, p[0] == '/', !utf8.ValidString(p), strings.ContainsRune(p, 0):
		return guestPath{}, refuse(abi.EDENIED)
	}
	kept := make([]string, 0, 8)
	last := ""
	for part := range strings.SplitSeq(p, "/") {
		last = part
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			if len(kept) == 0 {
				return guestPath{}, refuse(abi.EDENIED)
			}
			kept = kept[:len(kept)-1]
			continue
		case len(part) > abi.MaxFileName, runtime.GOOS == "windows" && windowsName(part):
			return guestPath{}, refuse(abi.EDENIED)
		}
		if kept = append(kept, part); len(kept) > abi.MaxFileComponents {
			return guestPath{}, refuse(abi.EDENIED)
		}
	}
	if len(kept) == 0 {
		return guestPath{name: ".", slash: true}, nil
	}
	dir := last == "" || last == "." || last == ".."
	return guestPath{name: strings.Join(kept, "/"), depth: len(kept), slash: dir}, nil
}

// parent returns the directory of an entry.
func (p guestPath) parent() guestPath {
	i := strings.LastIndexByte(p.name, '/')
	if i < 0 {
		return guestPath{name: ".", slash: true}
	}
	return guestPath{name: p.name[:i], depth: p.depth - 1, slash: true}
}

// windowsName reports whether Windows would not take a name for a plain file of that name:
// a device, a stream, another separator, or a name that it truncates.
func windowsName(part string) bool {
	if strings.ContainsAny(part, `\:`) || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
		return true
	}
	base, _, _ := strings.Cut(part, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		if n, ok := strings.CutPrefix(base, port); ok && strings.Contains("0123456789¹²³", n) &&
			utf8.RuneCountInString(n) == 1 {
			return true
		}
	}
	return false
}
