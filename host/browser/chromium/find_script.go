package chromium

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// How much of a wrapper is read, and how many lie inside of one another.
const (
	scriptBytes = 64 << 10
	scriptDepth = 4
)

var errWrapper = errors.New("is a script whose browser cannot be made out: set browser.path to the executable that it starts")

// follow is the executable behind a path: links are resolved and wrapper scripts
// are read, not run, for what they hand over to (B172). A wrapper would swallow the
// kill, and add keys and extensions.
func follow(path string) (string, error) {
	for range scriptDepth {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", reason(err)
		}
		head, err := readHead(real)
		if err != nil {
			return "", reason(err)
		}
		if !bytes.HasPrefix(head, []byte("#!")) {
			return real, executable(real)
		}
		if path = handsOver(real, head); path == "" {
			return "", errWrapper
		}
	}
	return "", errWrapper
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 -- the operator's browser
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, scriptBytes))
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return reason(err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return errors.New("is not an executable file")
	}
	return nil
}

var (
	assigns = regexp.MustCompile(`^\s*(?:export\s+|readonly\s+)?([A-Za-z_][A-Za-z0-9_]*)=(\S*)\s*$`)
	hands   = regexp.MustCompile(`^\s*(?:[^#]*[;&|]\s*)?exec\s+(.*)$`)
	refers  = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)
)

// handsOver is what a script ends in, by its last exec of a file that exists; "" is
// none. It understands plain assignments, and takes a variable that it does not
// know, in front of a slash, for the script's own directory: that is how vendors
// write them.
func handsOver(script string, text []byte) string {
	known := map[string]string{}
	found := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, scriptBytes)
	for lines.Scan() {
		line := lines.Text()
		if m := assigns.FindStringSubmatch(line); m != nil {
			if v, ok := expand(unquote(m[2]), known, ""); ok {
				known[m[1]] = v
			}
			continue
		}
		m := hands.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		target, ok := expand(program(m[1]), known, filepath.Dir(script))
		if ok && filepath.IsAbs(target) && target != script && executable(target) == nil && !debugger(target) {
			found = target
		}
	}
	return found
}

// program is the first word of a command line that is not an option of exec.
func program(line string) string {
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "-a": // takes a name
			i++
		case strings.HasPrefix(words[i], "-"):
		default:
			return unquote(words[i])
		}
	}
	return ""
}

func unquote(word string) string { return strings.Trim(word, `"'`) }

// expand puts in the values of variables. An unknown one is here, if that is given
// and it is all that stands before the first slash; otherwise nothing is known.
func expand(word string, known map[string]string, here string) (string, bool) {
	if strings.ContainsAny(word, "`(*?") {
		return "", false
	}
	ok := true
	out := refers.ReplaceAllStringFunc(word, func(ref string) string {
		v, is := known[strings.Trim(ref, "${}")]
		switch {
		case is:
			return v
		case here != "" && strings.HasPrefix(word, ref+"/"):
			return here
		}
		ok = false
		return ""
	})
	return out, ok && !strings.Contains(out, "$")
}

// debugger knows what wrappers exec when they are asked to.
func debugger(path string) bool {
	base := filepath.Base(path)
	return base == "gdb" || base == "valgrind" || base == "man" || base == "env" || base == "sh" || base == "bash"
}
