package files

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/host/destination"
)

// Names in a directory.
const (
	manifestName = "_sluice_manifest.json"
	manifestTmp  = "_sluice_manifest.json.tmp"
	lockName     = "_sluice_lock"
	keysTmp      = "_sluice_keys.tmp"
)

var (
	partPattern = lazily(`^part-\d{12,20}-\d{12,20}-\d{6,20}\.[a-z]+$`)
	tmpPattern  = lazily(`^\.part-\d{6,20}\.tmp$`)
	reserved    = lazily(`(?i)^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*| *)$`)
)

// partName returns the name of a part file, tmpName its name before it is committed.
func partName(p part, extension string) string {
	return fmt.Sprintf("part-%012d-%012d-%06d.%s", p.From, p.To, p.Number, extension)
}

func tmpName(number uint64) string { return fmt.Sprintf(".part-%06d.tmp", number) }

// folderName returns a name for a folder that has no special meaning on any system and is not in taken.
func folderName(text string, taken map[string]bool) string {
	return destination.UniqueName(safe(text), taken)
}

func safe(text string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x20 || strings.ContainsRune(`/\:*?"<>|[]{}`, r) { // including characters of glob patterns
			return '_'
		}
		return r
	}, text)
	if n := len(name); n > 0 && (name[n-1] == '.' || name[n-1] == ' ') {
		name = name[:n-1] + "_"
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~") {
		name = "_" + name[1:]
	}
	if name == "" || reserved().MatchString(name) {
		name = "_" + name
	}
	return name
}

// lazily compiles an expression when it is first used: it would cost every start of the program and of a worker.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
