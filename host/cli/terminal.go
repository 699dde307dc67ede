package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
)

// terminal asks on the terminal. What the host says stands apart from the
// connector's own text; secrets are read without echo.
type terminal struct {
	in     *os.File
	screen *screen
}

// terminal returns the owner at the keyboard, if there is one.
func (c *command) terminal() (terminal, bool) {
	in, ok := c.in.(*os.File)
	return terminal{in, c.screen}, ok && term.IsTerminal(int(in.Fd()))
}

// Ask draws the question and reads an answer per field.
func (t terminal) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	defer t.screen.hold()()
	return readCancellable(ctx, t, func() (host.Answer, error) { return t.ask(q), nil })
}

// readCancellable calls read, which reads from the terminal, and returns early when ctx ends.
// The read cannot be cancelled and goes on until the process ends.
func readCancellable[T any](ctx context.Context, t terminal, read func() (T, error)) (T, error) {
	state, _ := term.GetState(int(t.in.Fd())) // nil when it is no terminal any more
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := read()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		if state != nil {
			_ = term.Restore(int(t.in.Fd()), state) // echo, if a secret was being read
		}
		t.printf("") // the prompt has no end
		var none T
		return none, ctx.Err()
	}
}

// askSecret asks for one value without echo. It trims nothing.
func (t terminal) askSecret(ctx context.Context, prompt string) ([]byte, error) {
	return readCancellable(ctx, t, func() ([]byte, error) {
		t.prompt(prompt)
		text, err := t.readSecret()
		t.printf("")
		if err != nil || text == "" {
			return nil, usagef("no value was given; nothing is stored")
		}
		return []byte(text), nil
	})
}

func (t terminal) ask(q run.Question) host.Answer {
	out := host.Answer{InteractionID: q.InteractionID, Status: abi.AnswerCancelled}
	t.printf("")
	t.printf("── %s asks you: %s", abi.Clean(q.DisplayName), kindText[q.Kind])
	if q.Undeclared {
		t.printf("   Careful: its manifest does not announce questions of this kind.")
	}
	t.printf("   It says:")
	for _, line := range strings.Split(abi.CleanLines(q.RawMessage), "\n") {
		t.printf("   │ %s", line)
	}
	if q.Page.Host != "" {
		t.printf("   Its browser is at %s", strings.TrimSpace(abi.Clean(q.Page.Host)+"  "+abi.Clean(q.Page.Title)))
	}
	if q.Kind == abi.KindManualAction {
		if t.choose("Done? [yes/no] ") {
			out.Status = abi.AnswerSuccess
		}
		return out
	}
	data := map[string]json.RawMessage{}
	if draft := abi.Draft(q.RawSchema); draft != "" && q.Kind == abi.KindApproval {
		t.printf("   The text:")
		for _, line := range strings.Split(abi.CleanLines(draft), "\n") {
			t.printf("   │ %s", line)
		}
	}
	for _, f := range q.Fields {
		if q.Kind == abi.KindApproval {
			switch action := strictjson.String(data["action"]); f.Name {
			case "comment":
				f.Required = action == abi.DecisionRefine
			case "edited":
				if f.Required = true; action != abi.DecisionEdit {
					continue
				}
			}
		}
		value, ok := t.field(f)
		if !ok {
			return out
		}
		if value != nil {
			data[f.Name] = value
		}
	}
	out.Status, out.Data = abi.AnswerSuccess, data
	return out
}

var kindText = map[string]string{
	abi.KindOTP: "a one-time code", abi.KindCredentials: "a login", abi.KindManualAction: "to do something yourself",
	abi.KindApproval: "a decision", abi.KindClarification: "a question",
}

// field reads one value; no value and true for an optional one left empty.
func (t terminal) field(f run.Field) (json.RawMessage, bool) {
	label := abi.Clean(f.Title)
	if label == "" {
		label = abi.Clean(f.Shown)
	}
	if len(f.Enum) > 0 {
		label += " [" + abi.Clean(strings.Join(f.Enum, "/")) + "]"
	}
	switch {
	case f.Secret && f.Sealed:
		label += " (secret; the connector gets a handle, not the value)"
	case f.Secret:
		label += " (secret; the connector will see it; used for this run only)"
	case f.File:
		label += " (the path of a file)"
	case !f.Required:
		label += " (optional)"
	}
	for {
		t.prompt(label + ": ")
		text, err := t.read(f.Secret)
		switch {
		case err != nil:
			return nil, false
		case text == "" && !f.Required:
			return nil, true
		case text == "":
			t.printf("   A value is needed; Ctrl-D gives up.")
		case len(f.Enum) > 0 && !slices.Contains(f.Enum, text):
			t.printf("   One of %s, please.", abi.Clean(strings.Join(f.Enum, ", ")))
		case f.File:
			value, err := fileAnswer(text)
			if err == nil {
				return value, true
			}
			t.printf("   %s", abi.Clean(err.Error()))
		default:
			return typedValue(f.Type, text), true
		}
	}
}

// typedValue gives a value the JSON type its field asks for.
func typedValue(typ, text string) json.RawMessage {
	if typ == "number" || typ == "integer" || typ == "boolean" {
		if v, err := strictjson.Parse([]byte(text), strictjson.ParseOptions{AnyKind: true}); err == nil &&
			(v.Is(strictjson.KindNumber) || v.Is(strictjson.KindBool)) {
			return slices.Clone(v.Raw)
		}
	}
	return quoted(text)
}

func (t terminal) printf(format string, args ...any) { t.screen.line(fmt.Sprintf(format, args...)) }

// prompt starts a line that the answer completes.
func (t terminal) prompt(text string) { fmt.Fprint(t.screen.out, "   "+text) }

// choose asks for a yes or a no.
func (t terminal) choose(prompt string) bool {
	t.prompt(prompt)
	text, err := t.read(false)
	return err == nil && (text == "y" || text == "yes")
}

func (t terminal) read(secret bool) (string, error) {
	if secret {
		text, err := t.readSecret()
		t.printf("")
		return strings.TrimSpace(text), err
	}
	line, err := readLine(t.in)
	return strings.TrimSpace(line), err
}

// readSecret reads a line without echo. The terminal is raw meanwhile, so the
// keys that edit, give up and interrupt are read here; term.ReadPassword does not
// take Ctrl-D for an end.
func (t terminal) readSecret() (string, error) {
	fd := int(t.in.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(fd, state)
	return editLine(t.in, func() {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(os.Interrupt)
		}
	})
}

// editLine reads a line from the keys of a raw terminal.
func editLine(keys io.Reader, interrupt func()) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for len(line) <= 16*abi.KiB {
		if _, err := io.ReadFull(keys, b); err != nil {
			return "", err
		}
		switch key := b[0]; key {
		case '\r', '\n':
			return string(line), nil
		case ctrlC:
			interrupt()
		case ctrlD:
			if len(line) == 0 {
				return "", io.EOF
			}
		case ctrlU:
			line = line[:0]
		case '\b', 0x7f:
			_, last := utf8.DecodeLastRune(line)
			line = line[:len(line)-last]
		default:
			line = append(line, key)
		}
	}
	return "", errors.New("line too long")
}

// Keys of a raw terminal.
const (
	ctrlC = 'C' & 0x1f
	ctrlD = 'D' & 0x1f
	ctrlU = 'U' & 0x1f
)

// readLine reads one line byte by byte, so that it takes nothing of the next answer.
func readLine(r io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		if n == 1 && b[0] == '\n' || err == io.EOF && len(line) > 0 {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, b[:n]...)
	}
}
