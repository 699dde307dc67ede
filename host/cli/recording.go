package cli

import (
	"errors"
	"maps"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
)

// A tape is the recording that a run becomes, or comes from.
type tape struct {
	file     *recordFile    // of --record
	recorder *app.Recorder  // of --record
	replay   *app.Recording // of --replay
	kept     bool
}

// openTape opens what --record or --replay name, before anything is started.
func (f *runFlags) openTape() (*tape, error) {
	switch {
	case f.record != "" && f.replay != "":
		return nil, usagef("--record and --replay contradict each other")
	case f.replay != "" && len(f.hosts) > 0:
		return nil, usagef("--replay and --allow-host contradict each other: a replay reaches no server")
	case f.record != "":
		file, err := createFile("--record", f.record)
		if err != nil {
			return nil, err
		}
		return &tape{file: file, recorder: app.NewRecorder()}, nil
	case f.replay != "":
		replay, err := app.OpenRecording(f.replay)
		if err != nil {
			return nil, usagef("--replay: %w", err)
		}
		return &tape{replay: replay}, nil
	}
	return &tape{}, nil
}

// warnOther says that the module is not the one that was recorded.
func (c *command) warnOther(t *tape, l *app.Loaded) {
	if t.replay != nil && t.replay.Module() != string(l.Connector.Digest) {
		c.warnf("warning: this is another build of the connector than the one that was recorded")
	}
}

// keep writes the recording of a run and says what to look at in it.
func (c *command) keep(t *tape, result *run.Result) error {
	if t.recorder == nil {
		return nil
	}
	text, review, err := t.recorder.Finish(result)
	if errors.Is(err, app.ErrNotRecorded) {
		c.warnf("%v", err)
		return nil
	}
	if err != nil {
		return usagef("run %s is stored, its recording is not: %w", result.RunID, err)
	}
	if _, err := t.file.buffer.Write(text); err != nil {
		return err
	}
	t.kept = true
	if err := t.file.commit(); err != nil {
		return err
	}
	c.warnf("Recorded %s in %s (%s). Review it before you share it:", counted(review.Exchanges, "exchange"), t.file.path, bytesText(int64(len(text))))
	for _, origin := range slices.Sorted(maps.Keys(review.Origins)) {
		c.warnf("  %s: %s", abi.Clean(origin), counted(review.Origins[origin], "request"))
	}
	for _, line := range review.Lines() {
		c.warnf("  scrubbed from %s", line)
	}
	if len(review.Scrubbed) == 0 {
		c.warnf("  nothing had to be scrubbed")
	}
	return nil
}

// abandon removes the file of a run that was not kept.
func (t *tape) abandon() {
	if t.file != nil && !t.kept {
		t.file.abandon()
	}
}
