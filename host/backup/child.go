package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Command is the first argument of the unpacking process. Unpacking has a process of its own because an engine that
// encounters damage may end its process, and the archive is untrusted.
const Command = "unpack-backup"

// A verdict is the unpacking process's answer, one line of JSON.
type verdict struct {
	Digest  string  `json:"digest,omitempty"` // of the manifest
	Summary Summary `json:"summary"`
	Refused bool    `json:"refused,omitempty"`
	NoSpace bool    `json:"no_space,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// Main runs the unpacking process: it unpacks an archive from its standard input into the directory named in args.
func Main(args []string, in io.Reader, out io.Writer, o Opener) (code int) {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "want a directory")
		return 2
	}
	signal.Ignore(os.Interrupt) // the terminal signals the whole process group; the parent decides
	go endWith(os.Getppid())
	m, digest, err := Unpack(context.Background(), in, args[0], o)
	v := verdict{Digest: digest, Summary: m.Summary()}
	if err != nil {
		v = verdict{Refused: errors.Is(err, ErrRefused), NoSpace: errors.Is(err, store.ErrNoSpace), Error: err.Error()}
		code = 1
	}
	if err := json.NewEncoder(out).Encode(v); err != nil {
		return 1
	}
	return code
}

// endWith ends this process soon after its parent, whose successor may need the directory.
func endWith(parent int) {
	for range time.Tick(20 * time.Millisecond) {
		if os.Getppid() != parent {
			os.Exit(2)
		}
	}
}

// UnpackApart runs Unpack in another process of this program. That process only gets plain text, and no key. It keeps
// the file held, which may be nil, open until it ends.
func UnpackApart(ctx context.Context, archive io.Reader, dir string, held *os.File) (Summary, string, error) {
	self, err := executable()
	if err != nil {
		return Summary{}, "", fmt.Errorf("start the process that unpacks: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, Command, dir) // #nosec G204 -- this program itself
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &capped{&out, abi.MiB}, &capped{&errs, 16 * abi.KiB}
	if held != nil {
		cmd.ExtraFiles = []*os.File{held}
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return Summary{}, "", fmt.Errorf("start the process that unpacks: %w", err)
	}
	source := &failing{r: archive}
	_, _ = io.Copy(in, source) // if the process stops reading, its verdict says why
	in.Close()
	ended := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return Summary{}, "", ctx.Err()
	case source.err != nil: // the process only noticed the missing end
		return Summary{}, "", broken(source.err, "its encryption")
	}
	return judge(out.Bytes(), errs.Bytes(), ended)
}

func judge(out, errs []byte, ended error) (Summary, string, error) {
	var v verdict
	if err := json.Unmarshal(out, &v); err != nil {
		why := abi.Cut(abi.Clean(string(errs)), 200)
		return v.Summary, "", refuse("the process that unpacks it ended: %v: %s", ended, why)
	}
	switch {
	case v.Refused:
		return v.Summary, "", said{v.Error, ErrRefused}
	case v.NoSpace:
		return v.Summary, "", said{v.Error, store.ErrNoSpace}
	case v.Error != "" || ended != nil:
		return v.Summary, "", errors.Join(errors.New(v.Error), ended)
	}
	return v.Summary, v.Digest, nil
}

// A said is an error that the unpacking process reported, with its kind.
type said struct {
	text string
	kind error
}

func (s said) Error() string { return s.text }
func (s said) Unwrap() error { return s.kind }

// executable returns the path of this running program, even if another file now has its name.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// A failing reader remembers the error that ended reading.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// A capped writer keeps only the first bytes written to it.
type capped struct {
	b    *bytes.Buffer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.b.Write(p[:n])
	c.left -= n
	return len(p), nil
}
