package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// addCommands adds all commands, in the groups and order of the help.
func (c *command) addCommands(root *cobra.Command) {
	group := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, cmd := range commands {
			cmd.GroupID = id
			cmd.SuggestFor = commandSynonyms[cmd.Name()]
		}
		root.AddCommand(commands...)
	}
	group("collect", "Collect, and see what came of it:",
		exampleCommands{c}.demo(), runCommands{c}.run(), recordCommands{c}.records(), queryCommands{c}.query(),
		queryCommands{c}.tables(), searchCommand{c}.search(), recordCommands{c}.export(), listCommands{c}.runs(),
		showCommands{c}.show(), eventCommands{c}.events(), showCommands{c}.trace(), fileCommands{c}.files(),
		listCommands{c}.connections(), stateCommands{c}.state(), destinationCommands{c}.destination(),
	)
	group("service", "Leave it running:",
		serveCommands{c}.serve(), keyCommands{c}.login(), scheduleCommands{c}.schedule(),
		answerCommands{c}.answer(), steerCommands{c}.cancel(), steerCommands{c}.pause(),
		steerCommands{c}.resume(), keyCommands{c}.keys(), webhookCommands{c}.webhooks(),
		assistantCommands{c}.assistants(), mcpCommand{c}.mcp(),
	)
	group("grant", "Give, and take back:",
		installCommands{c}.inspect(), connectCommands{c}.connect(), grantCommands{c}.grant(),
		grantCommands{c}.revoke(), secretCommands{c}.secret(), auditCommands{c}.audit(),
	)
	group("connectors", "Get and make connectors:",
		installCommands{c}.install(), listCommands{c}.connectors(), listCommands{c}.uninstall(),
		signCommands{c}.verify(), buildCommands{c}.newConnector(), buildCommands{c}.build(),
		checkCommands{c}.check(), signCommands{c}.sign(), exampleCommands{c}.conformance(),
	)
	group("upkeep", "Upkeep:",
		doctorCommands{c}.doctor(), backupCommands{c}.backup(), backupCommands{c}.restore(), storeCommands{c}.store(),
		hostCommands{c}.hosts(), hostCommands{c}.drain(), versionCommands{c}.version(),
	)
	root.SetHelpCommandGroupID("upkeep")
	root.SetCompletionCommandGroupID("upkeep")
}

// commandSynonyms maps commands to the words that other programs use for them.
var commandSynonyms = map[string][]string{
	"run":         {"start", "exec", "sync", "collect"},
	"records":     {"list", "ls", "data", "cat"},
	"runs":        {"list", "ls", "status", "ps", "history"},
	"events":      {"log", "logs", "timeline"},
	"connections": {"list", "ls", "accounts"},
	"connectors":  {"list", "ls"},
	"inspect":     {"info", "describe"},
	"grant":       {"allow", "approve", "permit"},
	"revoke":      {"deny", "disconnect"},
	"install":     {"add", "update", "upgrade"},
	"uninstall":   {"remove", "rm", "delete"},
	"new":         {"init", "create"},
	"check":       {"test", "lint", "validate"},
	"secret":      {"auth", "authorize", "password"},
	"doctor":      {"config", "env"},
	"serve":       {"server", "daemon", "up"},
	"cancel":      {"stop", "kill", "abort"},
	"schedule":    {"cron", "schedules", "every"},
	"keys":        {"key", "token", "tokens", "apikey"},
	"connect":     {"setup", "link"},
	"assistants":  {"assistant", "ai", "llm", "agent"},
	"store":       {"migrate", "move", "copy", "database"},
	"webhooks":    {"webhook", "hooks", "notify"},
}

// args checks the number of arguments; want names them in the refusal.
func args(least, most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			given := fmt.Sprintf("%d arguments were", len(args))
			switch len(args) {
			case 0:
				given = "none was"
			case 1:
				given = "one was"
			}
			return usagef("%s takes %s; %s given, see %s --help", cmd.CommandPath(), want, given, cmd.CommandPath())
		}
		return nil
	}
}

// notSubcommand returns the error of a command that has only subcommands.
func notSubcommand(args []string, want string) error {
	if len(args) > 0 {
		return usagef("there is no command %.40q there; say %s", args[0], want)
	}
	return usagef("say %s", want)
}

// warnf prints a line that is not the result.
func (c *command) warnf(format string, args ...any) { c.screen.line(fmt.Sprintf(format, args...)) }
