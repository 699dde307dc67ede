package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// commands are all commands, in the order of the help.
func (c *command) commands() []*cobra.Command {
	return []*cobra.Command{
		c.demo(), c.run(),
		c.newConnector(), c.build(), c.check(), c.inspect(),
		c.install(), c.connectors(), c.uninstall(),
		c.sign(), c.verify(),
		c.connections(), c.runs(), c.show(), c.events(),
		c.records(), c.export(), c.state(),
		c.grant(), c.revoke(), c.secret(), c.audit(),
		c.backup(), c.restore(),
		c.doctor(), c.version(),
	}
}

// args checks the number of arguments; want names them in the refusal.
func args(least, most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("sluice %s takes %s, not %d arguments; see sluice %s --help", cmd.Name(), want, len(args), cmd.Name())
		}
		return nil
	}
}

// warnf prints a line that is not the result.
func (c *command) warnf(format string, args ...any) { c.screen.line(fmt.Sprintf(format, args...)) }
