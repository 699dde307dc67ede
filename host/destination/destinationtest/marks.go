package destinationtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicehost/sluice/host/destination"
)

// DirMarks keeps marks in a directory, one per file.
type DirMarks string

var _ destination.Marks = DirMarks("")

// Marks implements destination.Marks.
func (d DirMarks) Marks(context.Context) (map[destination.StreamID][]byte, error) {
	out := map[destination.StreamID][]byte{}
	paths, err := filepath.Glob(filepath.Join(string(d), "*.json"))
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		connection, stream, _ := strings.Cut(strings.TrimSuffix(filepath.Base(p), ".json"), "~")
		var id destination.StreamID
		if err := json.Unmarshal([]byte(`{"connection":"`+connection+`","stream":"`+stream+`"}`), &id); err != nil {
			return nil, err
		}
		out[id] = data
	}
	return out, err
}

// Mark implements destination.Marks.
func (d DirMarks) Mark(_ context.Context, id destination.StreamID, data []byte) error {
	path := filepath.Join(string(d), string(id.Connection)+"~"+string(id.Stream)+".json")
	if data == nil {
		return os.Remove(path)
	}
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
