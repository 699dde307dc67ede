package audit

import (
	"os/user"
	"regexp"
	"strconv"
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// An Action is what was done. The list is append-only, since entries are permanent.
type Action string

// The actions that are recorded.
const (
	ConnectionCreated    Action = "connection.created"
	ConnectorInstalled   Action = "connector.installed"
	ConnectorUninstalled Action = "connector.uninstalled"
	GrantApproved        Action = "grant.approved"
	GrantRevoked         Action = "grant.revoked"
	SecretSet            Action = "secret.set"
	SecretRemoved        Action = "secret.removed"
	VaultRotated         Action = "vault.rotated"
	RecordsExported      Action = "records.exported"
	RecordsDeleted       Action = "records.deleted"
	BackupMade           Action = "backup.made"
	BackupRestored       Action = "backup.restored"
	StoreCopied          Action = "store.copied"
	LossAccepted         Action = "store.loss_accepted"
	SettingsChanged      Action = "settings.changed"
	PolicyRefused        Action = "policy.refused"
	ModuleQuarantined    Action = "module.quarantined"

	// Actions of a host that keeps running.
	LoginCreated        Action = "login.created"
	LoginFailed         Action = "login.failed"
	SessionCreated      Action = "session.created"
	SessionEnded        Action = "session.ended"
	KeyCreated          Action = "key.created"
	KeyRevoked          Action = "key.revoked"
	WebhookCreated      Action = "webhook.created"
	WebhookDeleted      Action = "webhook.deleted"
	WebhookDisabled     Action = "webhook.disabled"
	WebhookRotated      Action = "webhook.rotated"
	WebhookTested       Action = "webhook.tested"
	WebhookRedelivered  Action = "webhook.redelivered"
	ScopeDenied         Action = "scope.denied"
	ScheduleChanged     Action = "schedule.changed"
	ScheduleDeleted     Action = "schedule.deleted"
	DestinationAdded    Action = "destination.added"
	DestinationPaused   Action = "destination.paused"
	DestinationResumed  Action = "destination.resumed"
	DestinationRotated  Action = "destination.rotated"
	DestinationRebuilt  Action = "destination.rebuilt"
	DestinationRemoved  Action = "destination.removed"
	AssistantAdded      Action = "assistant.added"
	AssistantRevoked    Action = "assistant.revoked"
	AssistantApproved   Action = "assistant.approved" // one call, by the owner
	AssistantDenied     Action = "assistant.denied"
	AssistantCalled     Action = "assistant.called"
	ConnectionChanged   Action = "connection.changed"
	ConnectionDeleted   Action = "connection.deleted"
	StateReset          Action = "state.reset"
	InteractionAnswered Action = "interaction.answered"
	HostDrained         Action = "host.drained" // Code is on or off
	HostAdmitted        Action = "host.admitted"
	HostRemoved         Action = "host.removed"
	VaultAccepted       Action = "vault.accepted" // for a restored database
	RunSteered          Action = "run.steered"    // paused, resumed or cancelled, given by Code
	ViewOpened          Action = "view.opened"    // a token for a live view was issued
	ArtifactRead        Action = "artifact.read"

	// TailCut and Damaged are about the log itself: an unfinished line was removed, or the log did
	// not match its witness.
	TailCut Action = "audit.tail_cut"
	Damaged Action = "audit.damaged"
)

// Actions lists all actions.
var Actions = []Action{
	ConnectionCreated, ConnectorInstalled, ConnectorUninstalled, GrantApproved, GrantRevoked, SecretSet,
	SecretRemoved, VaultRotated, RecordsExported, RecordsDeleted, BackupMade, BackupRestored, StoreCopied, LossAccepted,
	SettingsChanged, PolicyRefused, ModuleQuarantined, TailCut, Damaged,
	LoginCreated, LoginFailed, SessionCreated, SessionEnded, KeyCreated, KeyRevoked, WebhookCreated, WebhookDeleted,
	WebhookDisabled, ScopeDenied, ScheduleChanged, ScheduleDeleted, ConnectionChanged, ConnectionDeleted, StateReset,
	InteractionAnswered, HostDrained, HostAdmitted, HostRemoved, VaultAccepted, RunSteered, ViewOpened, DestinationAdded,
	DestinationPaused, DestinationResumed, DestinationRotated, DestinationRebuilt, DestinationRemoved, AssistantAdded,
	AssistantRevoked, AssistantApproved, AssistantDenied, AssistantCalled, ArtifactRead, WebhookRotated,
	WebhookTested, WebhookRedelivered,
}

// An Outcome is the result of an action.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Failed  Outcome = "failed"
)

// An Event is to be recorded. Texts are cleaned and truncated.
type Event struct {
	Action    Action
	Target    string // name of what was touched: a connection, connection/secret, a connector
	Outcome   Outcome
	Actor     string // "" is the owner at the command line
	RequestID string // of the API request, if any
	Address   string // the caller's address, if it came over a network
	Details   []Detail
}

// A Detail is a bounded fact about an event. Only the functions below create one.
type Detail struct{ key, value string }

// Count returns a number of things.
func Count(n int64) Detail { return Detail{"count", strconv.FormatInt(n, 10)} }

// Digest returns a SHA-256, as sha256:HEX.
func Digest(d string) Detail { return Detail{"digest", d} }

// Version returns the version of a connector.
func Version(v string) Detail { return Detail{"version", v} }

// Stream returns the stream to which an action was limited.
func Stream(name string) Detail { return Detail{"stream", name} }

// Run returns the run in which it happened.
func Run(id string) Detail { return Detail{"run", id} }

// Code returns why something was refused.
func Code(code string) Detail { return Detail{"code", code} }

// maxFact bounds the value of a fact, in bytes.
const maxFact = 256

var (
	factKey   = lazily(`^[a-z][a-zA-Z_]{0,31}$`)
	factValue = lazily(`^[A-Za-z0-9._:,/@-]+$`)
)

// Fact returns a code, an id or a number under a key. ok is false for anything that could be a
// sentence, since the log contains no free text.
func Fact(key, value string) (d Detail, ok bool) {
	return Detail{key, value}, factKey().MatchString(key) && len(value) <= maxFact && factValue().MatchString(value)
}

// The bounds of an entry, in characters.
const (
	maxActor   = 128
	maxTarget  = 256
	maxShort   = 64
	maxValue   = 256
	maxDetails = 8
)

func short(s string, most int) string { return abi.Cut(abi.Clean(s), most) }

// owner returns the actor at the command line.
var owner = sync.OnceValue(func() string {
	u, err := user.Current()
	if err != nil {
		return "owner"
	}
	return short("owner:"+u.Username, maxActor)
})

// lazily compiles an expression when it is first used: it would cost every start of the program and of a worker.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
