package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A profile is the guest's side of the Collection Profile: START comes in as
// the first line, messages go out one a line, and a question waits for its
// answer on the next line that comes in.
type profile struct {
	in      *bufio.Reader
	out     *bufio.Writer
	emitted int
	asked   int
}

// A start is START as far as this connector reads it.
type start struct {
	Type  string `json:"type"`
	Scope struct {
		Streams []grant `json:"streams"`
	} `json:"scope"`
	State    map[string]json.RawMessage `json:"state"`
	Bindings map[string]json.RawMessage `json:"bindings"`
	Config   settings                   `json:"config"`
}

// A record is RECORD.
type record struct {
	Type      string         `json:"type"`
	Stream    string         `json:"stream"`
	Key       string         `json:"key"`
	Data      map[string]any `json:"data"`
	EmittedAt string         `json:"emitted_at"`
}

var errNoAnswer = errors.New("the owner gave no answer")

// start reads START.
func (p *profile) start() (start, error) {
	var s start
	if err := p.read(&s); err != nil {
		return s, err
	}
	if s.Type != "START" {
		return s, fmt.Errorf("first line is of type %q", s.Type)
	}
	return s, nil
}

func (p *profile) read(v any) error {
	line, err := p.in.ReadBytes('\n')
	if len(line) == 0 {
		return err
	}
	return json.Unmarshal(line, v)
}

// send writes one line. Lines gather in a buffer until the host should see them.
func (p *profile) send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = p.out.Write(append(b, '\n'))
	return err
}

func (p *profile) record(stream, key string, data map[string]any) error {
	p.emitted++
	return p.send(record{"RECORD", stream, key, data, time.Now().UTC().Format(time.RFC3339Nano)})
}

// state tells how far the stream has come.
func (p *profile) state(stream string, cursor any) error {
	err := p.send(map[string]any{"type": "STATE", "stream": stream, "cursor": cursor})
	return errors.Join(err, p.out.Flush())
}

func (p *profile) progress(stream, message string, count int) error {
	return p.send(map[string]any{"type": "PROGRESS", "stream": stream, "message": message, "count": count})
}

func (p *profile) skip(stream, reason, message string) error {
	return p.send(map[string]any{"type": "SKIP_RESULT", "stream": stream, "reason": reason, "message": message,
		"recovery_hint": map[string]any{"action": "not_retriable"}})
}

// choose asks the owner for one of several texts and waits for the answer.
// Nothing may be written in between.
func (p *profile) choose(stream, message string, choices []string) (string, error) {
	p.asked++
	id := fmt.Sprintf("choice-%d", p.asked)
	err := p.send(map[string]any{
		"type": "INTERACTION", "request_id": id, "kind": "clarification", "stream": stream, "message": message,
		"schema": map[string]any{"type": "object", "required": []string{"answer"},
			"properties": map[string]any{"answer": map[string]any{"type": "string", "enum": choices}}},
	})
	if err := errors.Join(err, p.out.Flush()); err != nil {
		return "", err
	}
	var answer struct {
		Type, Status string
		RequestID    string `json:"request_id"`
		Data         struct{ Answer string }
	}
	if err := p.read(&answer); err != nil {
		return "", err
	}
	if answer.Type != "INTERACTION_RESPONSE" || answer.RequestID != id {
		return "", fmt.Errorf("want the response to %s, have %s %s", id, answer.Type, answer.RequestID)
	}
	if answer.Status != "success" {
		return "", errNoAnswer
	}
	return answer.Data.Answer, nil
}

// done sends DONE: failed with a message when err is not nil.
func (p *profile) done(err error) error {
	m := map[string]any{"type": "DONE", "status": "succeeded", "records_emitted": p.emitted}
	if err != nil {
		m["status"], m["error"] = "failed",
			map[string]any{"message": err.Error(), "code": "collect_failed", "retryable": false}
	}
	return errors.Join(p.send(m), p.out.Flush())
}
