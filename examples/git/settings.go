package main

import (
	"fmt"
	"path/filepath"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Settings are the connection's.
type settings struct {
	Path         string `json:"path"`
	MaxCommits   int    `json:"max_commits"`
	FirstParent  bool   `json:"first_parent"`
	IncludeFiles *bool  `json:"include_files"`
	MaxFiles     int    `json:"max_files_per_commit"`
}

const defaultMaxFiles = 20_000

// readSettings reads and checks them.
func readSettings(run *guest.Run) (settings, error) {
	var s settings
	if err := run.Config(&s); err != nil {
		return s, invalid("%v", err)
	}
	if s.Path != "" && !filepath.IsLocal(filepath.FromSlash(s.Path)) {
		return s, invalid("path %q does not stay inside the mounted directory", s.Path)
	}
	if s.MaxCommits < 0 || s.MaxFiles < 0 {
		return s, invalid("limits must not be negative")
	}
	if s.MaxFiles == 0 {
		s.MaxFiles = defaultMaxFiles
	}
	return s, nil
}

func invalid(format string, args ...any) error {
	return guest.Fail("invalid_settings", false, guest.ManualActionRequired, "settings: %w", fmt.Errorf(format, args...))
}

func (s settings) files() bool { return s.IncludeFiles == nil || *s.IncludeFiles }
