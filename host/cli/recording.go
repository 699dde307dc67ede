package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A recordingFiles is the recording that a run writes or replays.
type recordingFiles struct {
	file   *recordFile    // of --record
	replay *app.Recording // of --replay
	text   []byte         // of the replay, as it is in its file
	saved  bool
}

// openRecording opens the file of --record or --replay.
func (f *runFlags) openRecording() (*recordingFiles, error) {
	switch {
	case f.record != "" && f.replay != "":
		return nil, usagef("--record and --replay contradict each other")
	case f.replay != "" && f.bindings.all()[abi.BindingNetwork] != nil:
		return nil, usagef("--replay and --allow-host contradict each other: a replay reaches no server")
	case f.record != "":
		file, err := createFile("--record", f.record)
		if err != nil {
			return nil, err
		}
		return &recordingFiles{file: file}, nil
	case f.replay != "":
		replay, err := app.OpenRecording(f.replay)
		if err != nil {
			return nil, usagef("--replay: %w", err)
		}
		text, err := os.ReadFile(f.replay)
		return &recordingFiles{replay: replay, text: text}, err
	}
	return &recordingFiles{}, nil
}

// warnOther warns that the module differs from the recorded one.
func (c runCommands) warnOther(t *recordingFiles, l *app.Loaded) {
	if t.replay != nil && t.replay.Module() != string(l.Connector.Digest) {
		c.warnf("warning: this is another build of the connector than the one that was recorded")
	}
}

// saveRecording writes the recording of a run and says what to check in it.
func (c runCommands) saveRecording(ctx context.Context, to *client.Client, t *recordingFiles,
	result *run.Result) error {
	if t.file == nil {
		return nil
	}
	r, err := to.Recording(context.WithoutCancel(ctx), result.RunID)
	if errors.Is(err, store.ErrNotFound) {
		c.warnf("%v", app.ErrNotRecorded)
		return nil
	}
	if err != nil {
		return usagef("run %s is stored, its recording is not: %w", result.RunID, err)
	}
	if _, err := t.file.buffer.WriteString(r.Text); err != nil {
		return err
	}
	t.saved = true
	if err := t.file.commit(); err != nil {
		return err
	}
	c.warnf("Recorded %s in %s (%s). Review it before you share it:", countOf(r.Exchanges, "exchange"), t.file.path,
		bytesText(int64(len(r.Text))))
	for _, origin := range slices.Sorted(maps.Keys(r.Origins)) {
		c.warnf("  %s: %s", abi.Clean(origin), countOf(r.Origins[origin], "request"))
	}
	for _, line := range r.Scrubbed {
		c.warnf("  scrubbed from %s", line)
	}
	if len(r.Scrubbed) == 0 {
		c.warnf("  nothing had to be scrubbed")
	}
	return nil
}

// abandon removes the file of an unfinished recording.
func (t *recordingFiles) abandon() {
	if t.file != nil && !t.saved {
		t.file.abandon()
	}
}
