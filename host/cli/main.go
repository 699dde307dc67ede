// Package cli holds the commands. A command parses flags, opens a host, calls
// it, prints, and ends with a documented exit code; nothing is decided here.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/run"
)

// Main runs the command line and returns the exit code. In a worker process it
// runs the worker instead.
func Main(args []string) int {
	if code, worker := app.Worker(args); worker {
		return code
	}
	if err := jail.Conceal(); err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return exitHost
	}
	log.SetOutput(io.Discard)          // net/http logs what servers send
	cobra.EnableCommandSorting = false // the help has the order of commands
	return Execute(args, os.Stdin, os.Stdout, os.Stderr)
}

// Execute runs one command with the given streams.
func Execute(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := interruptible()
	defer stop()
	c, err := execute(ctx, args, in, out, errs)
	if c.waitForStartingHost(ctx, err) {
		c, err = execute(ctx, args, in, out, errs)
	}
	c.json = c.json || isUsage(err) && slices.Contains(args, "--json") // flags after a wrong one are not parsed
	if err != nil && ctx.Err() != nil && !c.hasResult {
		err = interrupted{err}
	}
	return c.exit(err)
}

func execute(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (*command, error) {
	c := &command{in: in, out: out, errs: errs, screen: newScreen(errs)}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	return c, root.ExecuteContext(ctx)
}

// interrupted marks an error after an interrupt, unless a run has a result.
type interrupted struct{ error }

// interruptible returns a context that the first interrupt, or a hangup of the terminal,
// cancels; the second interrupt kills the process. A closed standard output is an error
// of the next write rather than a signal.
func interruptible() (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // workers would inherit an ignored signal
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// command is one invocation.
type command struct {
	in        io.Reader
	out, errs io.Writer
	screen    *screen // over errs: progress, questions
	stdout    *screen // see screenOut
	json      bool
	store     string
	url       string // of a remote host
	keyFile   string
	client    *client.Client // the host that serves the data directory; see findHost
	ownHost   bool           // client is of a host of this command's own
	hasResult bool           // a run was started and has a result
	code      int            // set by a command that ends with a code of its own
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "Run connectors that nobody has to trust",
		Version:       app.ThisVersion().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Long: `Sluice runs a connector, one .wasm file that collects somebody's data, in a jail:
it gets what you granted, every record is checked against the granted scope, and
you see all of it live.

Exit codes: 0 success; 1 the connector failed; 2 wrong usage or a refused start;
3 protocol violation; 4 a limit or a denied grant; 5 cancelled; 6 the host failed;
7 succeeded and left data out.`,
		Example: `  sluice inspect mailbox.wasm      what it is, and what it asks for
  sluice run mailbox.wasm          collect: it asks you for what it needs
  sluice records mailbox           what it collected
  sluice show last                 how the last run ended
  sluice doctor                    whether this machine has what runs need`,
	}
	root.SetVersionTemplate("sluice {{.Version}}\n")
	root.PersistentFlags().StringVar(&c.store, "store", os.Getenv("SLUICE_STORE"),
		"where data is kept: badger:DIR, memory: or postgres://USER@HOST/DATABASE (default: the user's data directory; SLUICE_STORE)")
	root.PersistentFlags().Lookup("store").DefValue = "" // help does not show it: there may be a password in it
	root.PersistentFlags().StringVar(&c.url, "url", os.Getenv("SLUICE_URL"),
		"a host elsewhere, by its `URL` and a key (SLUICE_URL, SLUICE_KEY)")
	root.PersistentFlags().StringVar(&c.keyFile, "key-file", "", "the API key for --url is in `FILE`")
	root.PersistentFlags().BoolVar(&c.json, "json", false, "print JSON for machines")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see %s --help", plainFlagError(err), cmd.CommandPath())
	})
	c.addCommands(root)
	return root
}

// plainFlagError replaces the strconv function in a flag's error by what the value must be.
func plainFlagError(err error) error {
	head, function, ok := strings.Cut(err.Error(), ": strconv.")
	switch {
	case !ok:
		return err
	case strings.HasPrefix(function, "ParseBool"):
		return errors.New(head + ": want true or false")
	}
	return errors.New(head + ": want a whole number, 0 or more")
}

// usage marks an error of the command line itself.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

func usagef(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

// missingf returns an error for an unknown name or mode, with the API's code.
func missingf(code, format string, args ...any) error {
	return &run.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// cacheDir returns where compiled modules are kept, "" for the default.
func cacheDir() string { return os.Getenv("SLUICE_CACHE") }

// screenOut is standard output as a screen: whether results are for people.
func (c *command) screenOut() *screen {
	if c.stdout == nil {
		c.stdout = newScreen(c.out)
	}
	return c.stdout
}
