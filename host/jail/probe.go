package jail

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// States of a layer in a [Report].
const (
	LayerOK      = "ok"
	LayerMissing = "missing"
)

// Layer describes one layer of isolation on this machine.
type Layer struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Detail says what there is.
	Detail string `json:"detail"`
	// Cause and Remedy are for the operator, empty if the layer is ok.
	Cause  string `json:"cause,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is the isolation part of doctor's output.
type Report struct {
	SelfTest
	Layers []Layer `json:"layers"`
}

// Probe runs the self-test and explains every layer that is missing.
// dataDir is as for [Launcher.SelfTest].
func (l *Launcher) Probe(ctx context.Context, dataDir string) (Report, error) {
	test, err := l.SelfTest(ctx, dataDir)
	if err != nil {
		return Report{}, err
	}
	return Report{SelfTest: test,
		Layers: append(explain(test.Isolation),
			layer("group", l.Grouped(), "memory and threads of each worker", whyNoGroup))}, nil
}

// explain describes each layer of an isolation.
func explain(i Isolation) []Layer {
	wanted := []string{NamespaceNetwork, NamespaceMount, NamespacePID, NamespaceIPC, NamespaceUTS}
	missing := slices.DeleteFunc(wanted, i.has)
	return []Layer{
		layer("uid", i.UID == UIDOwn || i.has(NamespaceUser), describeUID(i), whyNoUID),
		layer("namespaces", len(missing) == 0, "has "+list(i.Namespaces), whyNoNamespaces),
		layer("landlock", i.Landlock > 0, describeLandlock(i), whyNoLandlock),
		layer("seccomp", i.Seccomp == SeccompStrict, i.Seccomp, whyNoSeccomp),
		layer("limits", i.Rlimits, describeLimits(i), whyNoLimits),
	}
}

// layer describes a layer. It calls why only if the layer is missing.
func layer(name string, ok bool, detail string, why func() (cause, remedy string)) Layer {
	if ok {
		return Layer{Name: name, State: LayerOK, Detail: detail}
	}
	l := Layer{Name: name, State: LayerMissing, Detail: detail}
	l.Cause, l.Remedy = why()
	return l
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func describeUID(i Isolation) string {
	switch {
	case i.UID == UIDOwn:
		return "each worker has a uid of its own"
	case i.has(NamespaceUser):
		return "workers share the host's uid, without rights, in a user namespace each"
	}
	return "workers share the host's uid"
}

func describeLandlock(i Isolation) string {
	if i.Landlock == 0 {
		return "off"
	}
	return "ABI " + strconv.Itoa(i.Landlock)
}

func describeLimits(i Isolation) string {
	if i.Rlimits {
		return "memory, CPU, descriptors, files"
	}
	return "off"
}
