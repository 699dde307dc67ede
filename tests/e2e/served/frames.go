package served

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// A Frame is one server-sent event.
type Frame struct {
	ID    uint64
	Event string
	Data  json.RawMessage
}

// Frames is an open event stream.
type Frames struct {
	body  io.ReadCloser
	lines *bufio.Reader
}

// Stream opens the event stream of a run. query is appended; after is the last
// event that was seen, "" for none.
func (c *Client) Stream(ctx context.Context, id store.RunID, query, after string) (*Frames, error) {
	headers := []string{"Accept", "text/event-stream"}
	if after != "" {
		headers = append(headers, "Last-Event-ID", after)
	}
	res, err := c.open(ctx, "GET", "/v1/runs/"+string(id)+"/events"+query, nil, headers...)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != 200 {
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return nil, errors.Join(&Failure{Status: res.StatusCode, Message: string(text)}, err)
	}
	return &Frames{res.Body, bufio.NewReaderSize(res.Body, 64<<10)}, nil
}

// Next waits for a frame. It returns io.EOF at the regular end of the stream.
func (f *Frames) Next() (Frame, error) {
	var out Frame
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			return out, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && out.Event != "":
			return out, nil
		case name == "id":
			if out.ID, err = strconv.ParseUint(value, 10, 64); err != nil {
				return out, fmt.Errorf("id of a frame: %w", err)
			}
		case name == "event":
			out.Event = value
		case name == "data":
			out.Data = append(out.Data, value...)
		}
	}
}

// Close ends the stream.
func (f *Frames) Close() error { return f.body.Close() }
