package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"syscall"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/private"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// The exit codes of the command line.
const (
	exitOK        = 0
	exitConnector = 1
	exitUsage     = 2
	exitViolation = 3
	exitLimit     = 4
	exitCancelled = 5
	exitHost      = 6
	exitPartial   = 7 // the run succeeded but left data out
)

// exit prints an error and returns its exit code.
func (c *command) exit(err error) int {
	if err == nil {
		return c.code
	}
	if isClosedOutput(err) {
		return c.code
	}
	var stopped interrupted
	if errors.As(err, &stopped) {
		c.report("cancelled", "interrupted", nil)
		return exitCancelled
	}
	var refused *run.Refusal
	if errors.As(err, &refused) {
		c.report(refused.Code, refused.Message, refused.Details)
		return refusalCode(refused.Code)
	}
	var failed *runFailed
	if errors.As(err, &failed) {
		return failed.code
	}
	code, name := exitHost, "runtime_error"
	var busy *store.BusyError
	var damage *store.DamageError
	var answered *client.Error
	var gone *client.UnreachableError
	var held *dataInUseError
	var address *addressError
	var details map[string]any
	switch {
	case errors.Is(err, backup.ErrRefused):
		code, name = exitUsage, "backup_invalid"
	case errors.Is(err, app.ErrNoBackup), errors.Is(err, app.ErrCopyChoice), errors.Is(err, app.ErrUnfinishedCopy),
		errors.Is(err, backup.ErrNotEmpty), errors.Is(err, backup.ErrEncrypted), errors.Is(err, backup.ErrKey):
		code, name = exitUsage, "invalid_request"
	case isUsage(err), errors.Is(err, app.ErrStoreURL), errors.Is(err, sandbox.ErrNoCache),
		errors.Is(err, app.ErrNoVault), errors.Is(err, app.ErrNotApproved), errors.Is(err, app.ErrNotAuthorized),
		errors.Is(err, app.ErrNoAudit), errors.Is(err, vault.ErrInvalid):
		code, name = exitUsage, "invalid_request"
	case errors.Is(err, store.ErrNotFound), errors.Is(err, vault.ErrNotFound):
		code, name = exitUsage, "not_found"
	case errors.As(err, &answered):
		code, name = apiErrorCode(answered), answered.Detail()
		details = maps.Clone(answered.Details)
		delete(details, "code") // name has it
	case errors.As(err, &gone):
		name = "host_unreachable"
	case errors.As(err, &address):
		name = "address_unavailable"
	case errors.As(err, &held):
		name = "store_in_use"
	case errors.As(err, &busy):
		name, err = "store_in_use", fmt.Errorf("%w; wait until it ends, or stop it", err)
	case errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w; the data directory must be on a disk that can be written to; name another with --store badger:DIR", err)
	case errors.Is(err, store.ErrNoSpace):
		name = "store_no_space"
	case errors.As(err, &damage):
		name = damage.Code
	default:
		if text := private.Trouble(err); text != "" {
			name = "path_unusable"
			if !strings.Contains(err.Error(), text) {
				err = fmt.Errorf("%s (%w)", text, err)
			}
		}
	}
	c.report(name, oneLine(err.Error()), details)
	return code
}

// isClosedOutput reports whether the only error is a closed standard output, as with head.
func isClosedOutput(err error) bool {
	var write *fs.PathError
	return errors.As(err, &write) && write.Op == "write" && write.Path == os.Stdout.Name() &&
		errors.Is(write.Err, syscall.EPIPE)
}

// apiErrorCode maps what a host answered.
func apiErrorCode(e *client.Error) int {
	if e.Status >= 500 {
		return exitHost
	}
	return refusalCode(e.Detail())
}

// isUsage reports whether err is an error of the command line. Cobra's own errors have
// no type and are known by their text.
func isUsage(err error) bool {
	var bad usage
	return errors.As(err, &bad) || err != nil && strings.HasPrefix(err.Error(), "unknown command")
}

// oneLine joins cobra's suggestions, one a line, into a sentence. Without any it says
// how to list the commands.
func oneLine(message string) string {
	head, guesses, ok := strings.Cut(message, "\n\nDid you mean this?\n")
	switch {
	case ok:
		words := strings.Fields(guesses)
		last := len(words) - 1
		return head + "; did you mean " + join(" or ", strings.Join(words[:last], ", "), words[last]) + "?"
	case strings.HasPrefix(message, "unknown command"):
		return message + "; sluice --help lists them"
	}
	return message
}

func (c *command) report(code, message string, details map[string]any) {
	if !c.json {
		message = strings.TrimSuffix(strings.Replace(message, code+": ", "", 1), " ("+code+")") // said once, at the end
		fmt.Fprintf(c.errs, "sluice: %s (%s)\n", abi.CleanLines(message), code)
		return
	}
	out := map[string]any{"error": code, "message": message}
	if len(details) > 0 {
		out["details"] = details
	}
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	_ = e.Encode(out) // nothing can be reported without stdout
}

// refusalCode maps the code of a refused start.
func refusalCode(code string) int {
	switch {
	case strings.HasPrefix(code, "grant_"), code == "binding_not_approved":
		return exitLimit
	case code == "authorization_refused", code == "authorization_expired": // access denied, or nobody there
		return exitLimit
	case code == "authorization_unavailable":
		return exitHost
	case code == "runtime_error", code == "store_no_space", code == "quota_exceeded",
		code == "engine_unavailable", strings.HasPrefix(code, "isolation_"), code == "worker_start_failed":
		return exitHost
	}
	return exitUsage
}

// resultCode maps how a run ended.
func resultCode(r *run.Result) int {
	reason := ""
	if r.TerminalReason != nil {
		reason = *r.TerminalReason
	}
	switch {
	case r.Outcome == run.OutcomePartial:
		return exitPartial
	case r.Status == abi.Succeeded:
		return exitOK
	case reason == "connector_protocol_violation":
		return exitViolation
	case strings.HasPrefix(reason, "connector_"), reason == "recording_mismatch":
		return exitConnector
	case reason == "run_timed_out", reason == "assistance_timed_out", reason == "memory_limit_exceeded",
		reason == "recording_full", strings.HasPrefix(reason, "grant_"):
		return exitLimit
	case strings.HasPrefix(reason, "owner_"):
		return exitCancelled
	}
	return exitHost
}
