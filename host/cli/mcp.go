package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/web"
)

// mcpCommand is sluice mcp.
type mcpCommand struct{ *command }

// The bounds of the bridge.
const (
	maxMessage     = 1 << 20 // bytes of one line
	messagesAtOnce = 8
)

func (c mcpCommand) mcp() *cobra.Command {
	var assistant, tokenFile string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Let an assistant on this machine in, on standard input and output",
		Long: `Speaks MCP on standard input and output for an assistant that a client starts. Who it is says
its token, in --token-file or SLUICE_ASSISTANT_TOKEN, or on the owner's own machine
--assistant. It goes through the running host, and without one opens the data directory
itself for as long as it is used. docs/assistants.md says what to paste into which client.`,
		Example: "  sluice mcp --assistant notes\n  sluice mcp --url https://sluice.example --token-file notes.token",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			header := http.Header{}
			token, err := assistantToken(tokenFile)
			if err != nil {
				return err
			}
			switch {
			case (token == "") == (assistant == ""):
				return usagef("say who it is: --assistant NAME, or a token in --token-file or SLUICE_ASSISTANT_TOKEN; sluice assistants add makes one")
			case assistant != "" && c.url != "":
				return usagef("--assistant is for the host of this machine; elsewhere it is the token that counts")
			case assistant != "":
				header.Set(web.HeaderAssistant, assistant)
			default:
				header.Set("Authorization", "Bearer "+token)
			}
			return c.withAssistantClient(cmd.Context(), token, func(k *client.Client) error {
				return (&bridge{client: k, header: header, in: c.in, out: c.out}).run(cmd.Context())
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&assistant, "assistant", "", "stand in for the assistant `NAME`, as the owner of this machine")
	fl.StringVar(&tokenFile, "token-file", "", "a `FILE` with the token alone")
	return cmd
}

func assistantToken(file string) (string, error) {
	if file == "" {
		return os.Getenv("SLUICE_ASSISTANT_TOKEN"), nil
	}
	text, err := valueOrFile("--token-file", "@"+file)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(text, "\r\n") {
		return "", usagef("--token-file: %s has more than one line; it holds the token alone", abi.Clean(file))
	}
	return text, nil
}

// withAssistantClient is withClient with the assistant's token instead of an API key.
func (c mcpCommand) withAssistantClient(ctx context.Context, token string, do func(*client.Client) error) error {
	if c.url == "" {
		if err := c.requireData(); err != nil {
			return err
		}
		return c.withClient(ctx, app.Options{}, do)
	}
	k, err := client.URL(c.url, token)
	if err != nil {
		return usagef("--url %s: %w", abi.Clean(c.url), err)
	}
	defer k.Close()
	return do(k)
}

// A bridge forwards a client's messages, one a line, to the host, and the answers back.
type bridge struct {
	client *client.Client
	header http.Header
	in     io.Reader
	out    io.Writer

	working sync.WaitGroup
	mu      sync.Mutex // guards what follows, and writing
	version string     // of the protocol, once it was agreed on
	cancels map[string]context.CancelFunc
	err     error
}

// A message has the members of an MCP message that a bridge reads.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

func (b *bridge) run(ctx context.Context) error {
	b.cancels = map[string]context.CancelFunc{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	places := make(chan struct{}, messagesAtOnce)
	lines := bufio.NewReaderSize(b.in, 64<<10)
	var failed error
	for ctx.Err() == nil {
		line, id, err := readMessage(lines)
		if errors.Is(err, errTooLong) {
			b.answer(errorAnswer(id, codeInvalid, fmt.Sprintf("the message is longer than %d bytes", maxMessage)))
			continue
		}
		if err != nil {
			failed = err
			break
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			code := codeParse
			if json.Valid(line) {
				code = codeInvalid // m has what is as it should be
			}
			b.answer(errorAnswer(m.ID, code, "that is no JSON-RPC message"))
			continue
		}
		if m.Method == "notifications/cancelled" {
			b.stop(m.Params.RequestID)
			continue
		}
		if m.Method == "initialize" { // later messages depend on it
			b.forward(ctx, m, line)
			continue
		}
		places <- struct{}{}
		one := b.begin(ctx, m.ID)
		b.working.Go(func() {
			defer func() { <-places }()
			defer b.stop(m.ID)
			b.forward(one, m, line)
		})
	}
	b.working.Wait() // the host may be one in this process
	if errors.Is(failed, io.EOF) {
		failed = nil
	}
	return errors.Join(failed, b.err)
}

// begin returns a context that a cancellation of the request ends.
func (b *bridge) begin(ctx context.Context, id json.RawMessage) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	if len(id) == 0 {
		context.AfterFunc(ctx, cancel)
		return ctx
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancels[string(id)] = cancel
	return ctx
}

func (b *bridge) stop(id json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cancel := b.cancels[string(id)]; cancel != nil {
		cancel()
		delete(b.cancels, string(id))
	}
}

// forward sends one message to the host and writes its answer.
func (b *bridge) forward(ctx context.Context, m message, line []byte) {
	status, got, err := b.client.MCP(ctx, b.headers(m), line)
	switch {
	case ctx.Err() != nil: // the client cancelled it
		return
	case err != nil:
		got = errorAnswer(m.ID, codeServer, err.Error())
	case len(m.ID) == 0 || status == http.StatusAccepted: // a notification has no answer
		return
	case !json.Valid(got) || !bytes.Contains(got, []byte(`"jsonrpc"`)):
		got = errorAnswer(m.ID, codeServer, errorReason(status, got))
	}
	if m.Method == "initialize" {
		var agreed struct {
			Result struct {
				Version string `json:"protocolVersion"`
			} `json:"result"`
		}
		if json.Unmarshal(got, &agreed) == nil {
			b.mu.Lock()
			b.version = agreed.Result.Version
			b.mu.Unlock()
		}
	}
	b.answer(got)
}

// headers returns those that the protocol wants beside a message.
func (b *bridge) headers(m message) http.Header {
	h := b.header.Clone()
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	version := m.Params.Meta.Version
	if version != "" {
		h.Set("Mcp-Method", headerText(m.Method))
		if name := m.Params.Name + m.Params.URI; name != "" {
			h.Set("Mcp-Name", headerText(name))
		}
	} else {
		b.mu.Lock()
		version = b.version
		b.mu.Unlock()
	}
	if version != "" && m.Method != "initialize" {
		h.Set("Mcp-Protocol-Version", headerText(version))
	}
	return h
}

// headerText returns a text as a header may have it.
func headerText(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) || s != strings.TrimSpace(s) {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}

// Codes of JSON-RPC.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeServer  = -32000
)

// errorAnswer returns the answer to a message that did not reach the host.
func errorAnswer(id json.RawMessage, code int, text string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	quoted, _ := json.Marshal(abi.Cut(abi.Clean(text), 500))
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quoted)
}

// errorReason returns what an answer says that is not of the protocol.
func errorReason(status int, got []byte) string {
	var p struct{ Error, Message string }
	switch {
	case json.Unmarshal(got, &p) == nil && p.Message != "":
		return fmt.Sprintf("%s (%s)", p.Message, p.Error)
	case status == http.StatusUnauthorized:
		return "the host does not let this assistant in"
	}
	return fmt.Sprintf("the host answered with status %d: %s", status, got[:min(len(got), 200)])
}

func (b *bridge) answer(line []byte) {
	var one bytes.Buffer
	if err := json.Compact(&one, line); err != nil {
		return
	}
	one.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.out.Write(one.Bytes()); err != nil && b.err == nil {
		b.err = err
	}
}
