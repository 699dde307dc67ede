package timeline

import (
	"cmp"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Outcomes of a run beside its status: a completed run with outcome partial left data out.
const (
	Complete = "complete"
	Partial  = "partial"
)

// A Trouble is a failed run, or one of its known gaps, for which something may help.
type Trouble struct {
	Connection store.ConnectionID
	Connector  string
	Run        store.RunID
	Kind       string // of a known gap; "" for the end of the run
	Reason     string // of the gap, or terminal reason
	Action     string // of its recovery hint; "" if there is none
	Said       bool   // a text of the connector is shown above
	Again      string // command that repeats the run; "" for that of the connection
	Unkept     bool   // nothing of the run is stored, so no other command can show or change it
}

// A Remedy is what helps: a sentence, and the command and the page to do it with. It always has all
// of them.
type Remedy struct {
	Text    string
	Command string
	Page    string // a path
	Label   string // of the link to it
}

// Remedy returns what helps. The host's own reasons take precedence over the connector's hint.
func (t Trouble) Remedy() Remedy {
	if r, ok := t.ofHost(); ok {
		return r
	}
	return t.ofAction()
}

// ofHost returns what helps if the host knows the cause.
func (t Trouble) ofHost() (Remedy, bool) {
	switch {
	case t.Kind == "interaction_required", t.Reason == "assistance_timed_out":
		return t.again(t.answer()), true
	case t.Kind == "checkpoint_commit":
		return t.again("Nothing stored is lost: the next run collects it again and goes on from there."), true
	case t.Kind == "records_rejected":
		return t.connector(
				"Tell the connector's author which records these are, or install a version that fits its own manifest.", t.check()),
			true
	case t.Kind == "detail_gap" && t.Action == abi.NotRetriable:
		return t.see("The service does not have it any more: running again will not help."), true
	case t.Reason == "scope_not_supported":
		return t.grant("The connector cannot narrow it like this; give it a scope without what it names."), true
	case t.Kind != "" && t.Kind != "run_failed":
		return Remedy{}, false
	case strings.HasPrefix(t.Reason, "grant_"):
		return t.grant("Decide again what it may do."), true
	case t.Reason == "run_timed_out", t.Reason == "memory_limit_exceeded", t.Reason == "recording_full":
		return t.grant("Collect less at a time, with a narrower scope."), true
	case strings.HasPrefix(t.Reason, "owner_"), t.Reason == "connector_reported_cancelled",
		t.Reason == "controller_restarted":
		return t.again("Run it again; what was stored stays."), true
	case t.Reason == "recording_mismatch":
		return t.connector("If the connector was meant to change, record it again.", t.command()+" --record FILE"), true
	case t.Reason == "replay_diverged":
		return t.connector(
			"Run it again: it goes on from its last checkpoint. Tell the connector's author that it does not do the same again when it is answered the same.", t.command()), true
	case t.Reason == "connector_protocol_violation", t.Reason == "connector_trapped",
		t.Reason == "connector_exit_without_done", t.Reason == "connector_stdin_closed":
		return t.fault(), true
	case t.Reason == "connector_reported_failed":
		return Remedy{}, false
	case t.Reason == "worker_lost", t.Reason == "worker_protocol_error":
		return t.again("Run it again; if it stays so, sluice doctor says what this machine lacks."), true
	case t.Reason != "":
		return Remedy{"See what this host lacks.", "sluice doctor", "/ui/settings", "Settings and checks"}, true
	}
	return Remedy{}, false
}

// ofAction returns the advice for a recovery hint.
func (t Trouble) ofAction() Remedy {
	switch t.Action {
	case abi.RetryByRuntime:
		return t.again("The next run tries again.")
	case abi.RetryOnConnectorUpgrade:
		return t.connector("Install a newer version of the connector.", "sluice install FILE")
	case abi.RefreshCredentials:
		return Remedy{"Renew the sign-in or the secret, then run it again.", t.kept("sluice secret list " + t.name()),
			t.page(""), "Its secrets"}
	case abi.ManualActionRequired:
		return t.again("See to what the message says, then run it again.")
	case abi.UpdateSelector:
		return t.connector("The site has changed: install a newer version of the connector.", "sluice install FILE")
	case abi.UpstreamUnblock:
		return t.again("The service refuses: see to it there, then run it again.")
	case abi.NotRetriable:
		return t.see("Running it again will not help.")
	}
	if t.Said {
		return t.again("Do what the connector's message says, then run it again.")
	}
	if t.Unkept {
		return t.again("The connector gave no reason that can be acted on: ask its author.")
	}
	return t.see("The connector gave no reason that can be acted on; its timeline has what it did, for its author.")
}

func (t Trouble) name() string { return abi.Clean(string(t.Connection)) }

func (t Trouble) page(tail string) string { return "/ui/connections/" + t.name() + tail }

func (t Trouble) again(text string) Remedy {
	return Remedy{text, t.command(), t.page(""), "Run it again"}
}

// command returns the command that repeats the run.
func (t Trouble) command() string {
	return cmp.Or(t.Again, "sluice run "+t.name())
}

// kept returns a command that needs stored data of the run or its connection, or the command that
// repeats the run if nothing is stored.
func (t Trouble) kept(command string) string {
	if t.Unkept {
		return t.command()
	}
	return command
}

// answer returns what helps if a question was declined or not answered in time.
func (t Trouble) answer() string {
	if t.Reason == "interaction_cancelled" {
		return "Run it again and answer what it asks."
	}
	return "Run it again and answer in time."
}

// fault returns what helps if the connector is broken: its author needs the timeline.
func (t Trouble) fault() Remedy {
	if t.Unkept {
		return t.connector("This is a fault of the connector: once its author has mended it, try it again.", t.command())
	}
	return t.connector("This is a fault of the connector: install another version, or show its author what it did.",
		"sluice events "+string(t.Run))
}

func (t Trouble) grant(text string) Remedy {
	return Remedy{text, t.kept("sluice grant " + t.name()), t.page("/grant"), "Decide what it may do"}
}

func (t Trouble) see(text string) Remedy {
	return Remedy{text, t.kept("sluice events " + string(t.Run)), "/ui/runs/" + string(t.Run), "The run's timeline"}
}

func (t Trouble) check() string {
	if t.Connector == "" {
		return t.kept("sluice events " + string(t.Run))
	}
	return "sluice check " + abi.Clean(t.Connector)
}

func (t Trouble) connector(text, command string) Remedy {
	if t.Connector == "" {
		return Remedy{text, command, "/ui/connectors", "Connectors"}
	}
	return Remedy{text, command, "/ui/connectors/" + abi.Clean(t.Connector), "Its versions"}
}
