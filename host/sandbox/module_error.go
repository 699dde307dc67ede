package sandbox

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// The codes that a refused module has in the API (S34, A179).
const (
	CodeModuleInvalid  = "module_invalid"
	CodeEscapeAttempt  = "sandbox_escape_attempt"
	importNameShown    = 80 // bytes of a refused import's name in texts
	escapeHostFS       = "host-fs-escape"
	escapeHostEnv      = "host-env-leak"
	escapeNetwork      = "network-escape"
	escapeHostProcess  = "host-process-escape"
	escapeKindNotKnown = "other"
)

// A ModuleError says why a module was refused. Its texts are safe to show:
// names from the module are quoted and cut.
type ModuleError struct {
	Rule   string // one of the Rule constants; details.rule of the API
	Offset int64  // byte of the module where the fault was found
	Detail string // what is wrong, with the limit where there is one
	Import string // the refused import as module.name, unquoted and uncut; else empty
}

// Error names what, where, the limit and what to do.
func (e *ModuleError) Error() string {
	return fmt.Sprintf("module refused (%s) at byte %d: %s; %s", e.Rule, e.Offset, e.Detail, remedy(e.Rule))
}

// Code returns the API's code: CodeEscapeAttempt for a refused import, else
// CodeModuleInvalid.
func (e *ModuleError) Code() string {
	if e.EscapeAttempt() {
		return CodeEscapeAttempt
	}
	return CodeModuleInvalid
}

// EscapeAttempt reports whether the module asked for something that no
// connector can have (A179).
func (e *ModuleError) EscapeAttempt() bool {
	switch e.Rule {
	case RuleImportUnknown, RuleImportSignature, RuleImportKind, RuleImportBinding:
		return true
	}
	return false
}

// EscapeKind names what a refused import would have reached, in the words of
// A179, as far as its name tells. It is empty when EscapeAttempt is false.
func (e *ModuleError) EscapeKind() string {
	if !e.EscapeAttempt() {
		return ""
	}
	module, name, _ := strings.Cut(e.Import, ".")
	if module == abi.ModuleNetwork || module == abi.ModuleBrowser {
		return escapeNetwork
	}
	words := strings.ToLower(module + "." + name)
	for _, k := range escapeWords {
		for _, word := range k.words {
			if strings.Contains(words, word) {
				return k.kind
			}
		}
	}
	return escapeKindNotKnown
}

// escapeWords maps parts of names to the kind of escape, first match first.
var escapeWords = []struct {
	kind  string
	words []string
}{
	{escapeNetwork, []string{"sock", "net", "http", "dns", "tcp", "udp", "dial", "connect", "listen", "fetch"}},
	{escapeHostProcess, []string{"proc", "exec", "spawn", "fork", "system", "kill", "thread", "dlopen", "syscall", "raise"}},
	{escapeHostEnv, []string{"environ", "getenv", "env_", "args"}},
	{escapeHostFS, []string{"path", "file", "open", "read", "write", "fd_", "dir", "fs"}},
}

// fault makes a ModuleError; format and args must not carry raw names.
func fault(rule string, at int, format string, args ...any) *ModuleError {
	return &ModuleError{Rule: rule, Offset: int64(at), Detail: fmt.Sprintf(format, args...)}
}

// overLimit is the fault of everything that is counted or sized.
func overLimit(rule string, at int, subject string, have, limit uint64, unit string) *ModuleError {
	return fault(rule, at, "%s has %d %s, the limit is %d", subject, have, unit, limit)
}

// quoted makes bytes from a module printable on one line and short.
func quoted(name []byte) string {
	if len(name) > importNameShown {
		return fmt.Sprintf("%+q…", name[:importNameShown])
	}
	return fmt.Sprintf("%+q", name)
}
