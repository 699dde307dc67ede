package cli

import (
	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
)

// bindingFlags are the values of flags of bindings, by the name of the binding.
type bindingFlags struct {
	values   map[string]*[]string
	switches map[string]*bool
}

// add adds a flag for each binding to a command; of says which of its two.
func (g *bindingFlags) add(cmd *cobra.Command, of func(binding.Flag) (name, usage string)) {
	g.values, g.switches = map[string]*[]string{}, map[string]*bool{}
	for _, k := range app.Kinds {
		name, usage := of(k.Flag())
		if k.Flag().Switch {
			g.switches[k.Name()] = cmd.Flags().Bool(name, false, usage)
		} else {
			g.values[k.Name()] = cmd.Flags().StringArray(name, nil, usage)
		}
	}
}

// of returns the values that were given for a binding; of a switch that is on, its name.
func (g bindingFlags) of(k binding.Kind) []string {
	if on := g.switches[k.Name()]; on != nil && *on {
		return []string{k.Name()}
	}
	if values := g.values[k.Name()]; values != nil {
		return *values
	}
	return nil
}

// all returns the values that were given, by the name of the binding.
func (g bindingFlags) all() map[string][]string {
	out := map[string][]string{}
	for _, k := range app.Kinds {
		if values := g.of(k); len(values) > 0 {
			out[k.Name()] = values
		}
	}
	return out
}
