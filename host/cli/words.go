package cli

import (
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
)

// An ability is a group of imports in plain words. Prefixes are of
// module.name.
var abilities = []struct {
	words    string
	prefixes []string
}{
	{"hand over records and cursors", list(abi.ModuleCore, "start", "emit", "checkpoint", "done")},
	{"report progress, gaps and what it skipped", list(abi.ModuleCore, "progress", "skip", "gap", "recovered", "coverage")},
	{"ask you something and wait for the answer", list(abi.ModuleCore, "interact")},
	{"tell you what it waits for", list(abi.ModuleCore, "assist")},
	{"write a log and text for you", list(abi.ModuleCore, "log", "message")},
	{"make web requests through the host", list(abi.ModuleNetwork, "")},
	{"act in a browser through the host", list(abi.ModuleBrowser, "")},
	{"open files in the directories you mount", list(abi.ModuleWASI, "path_")},
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

// able lists what the imports of a connector let it do.
func able(l *host.Loaded) []string {
	var out []string
	for _, a := range abilities {
		used := slices.ContainsFunc(l.Module.Imports, func(i host.Import) bool {
			return slices.ContainsFunc(a.prefixes, func(p string) bool { return strings.HasPrefix(i.String(), p) })
		})
		if used {
			out = append(out, a.words)
		}
	}
	return out
}

// A request is one thing the manifest asks for, and what comes of it.
type request struct {
	Binding  string `json:"binding"`
	Wants    string `json:"wants"`
	Required bool   `json:"required"`
	Granted  string `json:"granted"`
}

// goesTo says what becomes of a secret (R155, R160).
func goesTo(d abi.FieldDelivery) string {
	if d.Delivery == "plain" {
		return "the connector sees it"
	}
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

// requests are the bindings, in name order, in plain words.
func requests(m *abi.Manifest) []request {
	var out []request
	for _, name := range sortedNames(m.Bindings) {
		b := m.Bindings[name]
		one := func(wants, granted string) { out = append(out, request{name, wants, b.Required, granted}) }
		switch name {
		case abi.BindingFilesystem:
			for _, w := range b.Mounts {
				access, flag := "read the directory ", "=DIR"
				if w.Writable {
					access, flag = "read and change the directory ", "=DIR:rw"
				}
				one(join(": ", access+abi.Clean(w.Name), abi.Clean(w.Purpose)), "only with --mount "+abi.Clean(w.Name)+flag)
			}
			one("a scratch directory of its own", "yes, emptied after each run")
		case abi.BindingNetwork:
			wanted, err := host.WantedHosts(m, nil)
			for _, name := range b.Hosts {
				granted := "only with --allow-host " + abi.Clean(name)
				if err == nil && slices.Contains(wanted, name) {
					granted = "with --yes, or --allow-host " + abi.Clean(name)
				}
				one("reach "+abi.Clean(name), granted)
			}
		case abi.BindingInteractive:
			one("ask you "+orNone(m.HumanKinds), "when somebody is there to ask; you decide each answer")
		default:
			one(abi.Clean(name), "this host does not have it")
		}
	}
	if m.Sluice != nil {
		for _, s := range m.Sluice.Secrets {
			out = append(out, request{"secret", "the secret " + join(" — ", s.Name, abi.Clean(s.Label)), s.Required,
				join("; ", "only with sluice secret set, or --secret "+s.Name+"=@FILE", goesTo(s.FieldDelivery))})
		}
	}
	return out
}
