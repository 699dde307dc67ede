package cli

import (
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// An ability is a group of imports in plain words. Prefixes are of
// module.name.
var abilities = []struct {
	words    string
	prefixes []string
}{
	{"hand over records and cursors", list(abi.ModuleCore, "start", "emit", "checkpoint", "done")},
	{"attach files to its records", list(abi.ModuleCore, "attach")},
	{"report progress, gaps and what it skipped",
		list(abi.ModuleCore, "progress", "skip", "gap", "recovered", "coverage")},
	{"ask you something and wait for the answer", list(abi.ModuleCore, "interact")},
	{"tell you what it waits for", list(abi.ModuleCore, "assist")},
	{"write a log and text for you", list(abi.ModuleCore, "log", "message")},
	{"read its input, write its output, read open files", list(abi.ModuleWASI, "fd_")},
	{"read the clock, wait, get random numbers", list(abi.ModuleWASI, "clock_", "random_", "poll_", "sched_")},
	{"read its name and settings", list(abi.ModuleWASI, "args_", "environ_")},
	{"call sockets, which always refuse", list(abi.ModuleWASI, "sock_")},
}

func list(module string, names ...string) []string {
	for i := range names {
		names[i] = module + "." + names[i]
	}
	return names
}

// capabilities lists what the imports of a connector let it do.
func capabilities(l *app.Loaded) []string {
	var out []string
	imports := func(prefix string) bool {
		return slices.ContainsFunc(l.Module.Imports, func(i app.Import) bool { return strings.HasPrefix(i.String(), prefix) })
	}
	for _, a := range abilities {
		if slices.ContainsFunc(a.prefixes, imports) {
			out = append(out, a.words)
		}
	}
	for _, k := range app.Kinds {
		if prefix, words := k.Imports(); imports(prefix) || l.ByLines(k.Name()) {
			out = append(out, words)
		}
	}
	return out
}

// A request is one thing that the manifest asks for, and whether it is granted.
type request struct {
	Binding  string `json:"binding"`
	Wants    string `json:"wants"`
	Required bool   `json:"required"`
	Granted  string `json:"granted"`
	// Flag of sluice grant and sluice run gives it; "" when it is given, or
	// nothing gives it.
	Flag string `json:"flag,omitempty"`
}

// deliveryText says where a secret is sent.
func deliveryText(d abi.FieldDelivery) string {
	var places []string
	for _, p := range d.Destinations {
		origin := p.Origin
		if origin == abi.OwnerOrigin {
			origin = "the server you name with --secret-to"
		}
		places = append(places, abi.Clean(origin+p.PathPrefix+" ("+strings.Join(p.Placements, ", ")+")"))
	}
	if places == nil {
		return "it goes nowhere"
	}
	return "the connector never sees it, and it goes to " + strings.Join(places, " and ")
}

// requests returns the bindings, in name order, then the secrets, in plain words.
// a is what is approved of them.
func requests(m *abi.Manifest, a store.Approved) []request {
	var out []request
	for _, name := range sortedNames(m.Bindings) {
		b := m.Bindings[name]
		one := func(wants, granted, flag string) {
			out = append(out, request{name, wants, b.Required, granted, flag})
		}
		k, known := app.Kinds.Of(name)
		switch {
		case known:
			for _, ask := range k.Asks(m, a) {
				one(ask.Words, ask.Granted, ask.Flag)
			}
		case name == abi.BindingInteractive:
			one("ask you "+orNone(m.HumanKinds), "when somebody is there to ask; you decide each answer", "")
		default:
			one(abi.Clean(name), "this host does not have it", "")
		}
	}
	for _, s := range run.SecretFields(m) {
		out = append(out, tokenRequests(m, s, a)...)
		out = append(out, secretRequest(m, s, a))
	}
	if m.Sluice != nil {
		for _, t := range m.Sluice.SessionTokens {
			out = append(out, sessionRequest(t))
		}
	}
	return out
}

// sessionRequest describes the session token that a login returns.
func sessionRequest(t abi.SessionToken) request {
	origin := t.Origin
	if origin == abi.OwnerOrigin {
		origin = "the server you name with --secret-to"
	}
	return request{
		Binding: "session_token",
		Wants:   abi.Clean("the session token " + t.Name + " that " + origin + t.PathPrefix + " gives " + t.Place()),
		Granted: abi.Clean("the connector never sees it, and it goes back to that server only (" +
			strings.Join(t.Placements, ", ") + ")"),
	}
}

// searchedText says how the host handles an answer that contains a sealed secret.
const searchedText = "answers are searched for it, but for what is packed in them (zip, PDF)"

func secretRequest(m *abi.Manifest, s abi.SecretField, a store.Approved) request {
	r := request{Binding: "secret", Wants: "the secret " + join(" — ", s.Name, abi.Clean(s.Label)), Required: s.Required}
	given := "only with sluice secret set, or --secret " + s.Name + "=@FILE"
	switch {
	case s.OAuth != nil:
		r.Granted = join("; ", obtainedText(m, s), deliveryText(s.FieldDelivery), searchedText)
	case slices.Contains(m.Sluice.ClientSecrets(), s.Name):
		r.Granted = join("; ", given, "the connector never sees it, and only the host uses it, to obtain tokens")
	case run.Sealed(m, s):
		r.Granted = join("; ", given, deliveryText(s.FieldDelivery), searchedText)
	case slices.Contains(a.Plain, s.Name):
		r.Granted = join("; ", given, "granted: the connector sees it")
	default:
		r.Flag = "--plain " + s.Name
		r.Granted = join("; ", given, "the connector sees it, so only with "+r.Flag+" too")
	}
	return r
}

// tokenRequests returns the servers from which the host obtains a secret.
func tokenRequests(m *abi.Manifest, s abi.SecretField, a store.Approved) []request {
	var out []request
	for _, ask := range app.TokenAsks(s, a) {
		out = append(out, request{abi.BindingNetwork, ask.Words, s.Required, ask.Granted, ask.Flag})
	}
	return out
}

// obtainedText says how the host obtains an OAuth secret (RFC 6749).
func obtainedText(m *abi.Manifest, s abi.SecretField) string {
	from := " from " + abi.Clean(s.OAuth.TokenURL)
	if len(s.OAuth.Scopes) > 0 {
		from += " for " + abi.Clean(strings.Join(s.OAuth.Scopes, " "))
	}
	if s.OAuth.Grant == abi.OAuthClient {
		return "the host obtains it with the secret " + s.OAuth.ClientSecret + from
	}
	return "the host obtains it by authorization" + from + ", only after " + run.AuthorizeCommand(m, m.Name(), s.Name)
}
