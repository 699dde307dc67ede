package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// An exportMark is how far exports of a connection went, as the file of --since-mark has
// it. nil is that of an export without one.
type exportMark struct {
	Connection store.ConnectionID      `json:"connectionId"`
	Since      time.Time               `json:"since"` // when the connection was made
	Streams    map[store.Stream]uint64 `json:"streams"`
}

// readMark reads a mark, which is none yet where there is no file.
func (c recordCommands) readMark(path string, conn host.Connection) (*exportMark, error) {
	if path == "" {
		return nil, nil
	}
	id := store.ConnectionID(conn.ConnectionID)
	none := &exportMark{Connection: id, Since: conn.CreatedAt, Streams: map[store.Stream]uint64{}}
	data, err := os.ReadFile(app.Home(path))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	var m exportMark
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	switch {
	case err != nil:
		return nil, usagef("--since-mark %s: %w; remove it to export everything", path, err)
	case m.Connection != id:
		return nil, usagef("--since-mark %s: it is the mark of another connection, %q", path, m.Connection)
	case !m.Since.Equal(conn.CreatedAt):
		c.warnf("Connection %s was made anew since; everything is exported.", id)
		return none, nil
	}
	if m.Streams == nil {
		m.Streams = none.Streams
	}
	return &m, nil
}

// after returns the version up to which a stream was exported.
func (m *exportMark) after(c *command, st store.StreamStats) uint64 {
	if m == nil {
		return 0
	}
	if m.Streams[st.Stream] > st.LastVersion { // a backup was restored since
		c.warnf("Stream %s is older than its mark; all of it is exported.", st.Stream)
		m.Streams[st.Stream] = 0
	}
	return m.Streams[st.Stream]
}

// write replaces the file in one step.
func (m *exportMark) write(path string) error {
	if m == nil {
		return nil
	}
	path = app.Home(path)
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write the mark: %w; what was exported is exported again", err)
	}
	err = json.NewEncoder(f).Encode(m)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write the mark: %w; what was exported is exported again", err)
	}
	return nil
}
