//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/scope"
)

// start returns the START for the options.
func (h *host) start(m *abi.Manifest) (*abi.Start, error) {
	o := h.options
	s := &abi.Start{
		RunID: "run_01TEST", ConnectionID: m.Name(), ConnectorID: m.ConnectorID,
		CollectionMode: o.Mode, Secrets: o.Secrets, DetailGaps: o.Gaps,
		ABI: &abi.Version{Major: abi.Major, Minor: abi.Minor},
	}
	if s.DetailGaps == nil {
		s.DetailGaps = []abi.ServedGap{}
	}
	var err error
	if s.Scope, err = scope.Normalise(scope.Request{Manifest: m, Explicit: json.RawMessage(o.Scope)}); err != nil {
		return nil, err
	}
	for stream, cursor := range o.State {
		b, err := json.Marshal(cursor)
		if err != nil {
			return nil, fmt.Errorf("state of %q: %w", stream, err)
		}
		if s.State == nil {
			s.State = map[string]json.RawMessage{}
		}
		s.State[stream] = b
	}
	if s.CollectionMode == "" {
		s.CollectionMode = abi.FullRefresh
		if len(s.State) > 0 {
			s.CollectionMode = abi.Incremental
		}
	}
	if err := settings(s, m, o.Config); err != nil {
		return nil, err
	}
	return s, h.bind(s, m)
}

// settings sets the configuration in s, after a check against the manifest.
func settings(s *abi.Start, m *abi.Manifest, config any) error {
	raw := []byte("{}")
	if config != nil {
		b, err := json.Marshal(config)
		if err != nil {
			return fmt.Errorf("config: %w", err)
		}
		raw, s.Config = b, b
	}
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if m.Sluice == nil {
		return nil
	}
	return m.Sluice.Settings.Check(v)
}

// bind offers bindings. Directories appear under the names of their mounts.
func (h *host) bind(s *abi.Start, m *abi.Manifest) error {
	s.Bindings.Network = &abi.NetworkBinding{Hosts: append([]string{}, m.Bindings[abi.BindingNetwork].Hosts...)}
	s.Bindings.Filesystem = &abi.FilesystemBinding{Mounts: []abi.GuestMount{}}
	if !h.options.NotInteractive {
		s.Bindings.Interactive = &struct{}{}
	} else if m.Bindings[abi.BindingInteractive].Required {
		return fmt.Errorf("the manifest requires the interactive binding")
	}
	dir := ""
	if len(h.options.Files) > 0 {
		dir = h.t.TempDir()
	}
	for _, name := range slices.Sorted(maps.Keys(h.options.Files)) {
		i := slices.IndexFunc(m.Bindings[abi.BindingFilesystem].Mounts,
			func(r abi.MountRequest) bool { return r.Name == name })
		if i < 0 {
			return fmt.Errorf("the manifest has no mount %q", name)
		}
		target, err := filepath.Abs(h.options.Files[name])
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if err := os.Symlink(target, path); err != nil {
			return err
		}
		mode := "ro"
		if m.Bindings[abi.BindingFilesystem].Mounts[i].Writable {
			mode = "rw"
		}
		s.Bindings.Filesystem.Mounts = append(s.Bindings.Filesystem.Mounts,
			abi.GuestMount{Path: filepath.ToSlash(path), Mode: mode})
	}
	return nil
}
