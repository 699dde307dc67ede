package abi

import (
	"fmt"
	"slices"
	"strings"
)

// checkDependencies is rows 4 to 9 of §3.2, row by row over all streams.
func checkDependencies(m *Manifest) error {
	rows := []struct {
		rule, want string
		bad        func(s StreamSpec, parents []string) bool
	}{
		{"dependency_self_reference", "another stream", func(s StreamSpec, parents []string) bool {
			return slices.Contains(parents, s.Name)
		}},
		{"dependency_unknown_stream", "streams of this manifest", func(_ StreamSpec, parents []string) bool {
			return slices.ContainsFunc(parents, func(p string) bool { return !m.Declares(p) })
		}},
		{"dependency_duplicate_parent", "each parent once", func(_ StreamSpec, parents []string) bool {
			sorted := slices.Sorted(slices.Values(parents))
			return len(slices.Compact(sorted)) < len(parents)
		}},
	}
	for _, row := range rows {
		for i, s := range m.Streams {
			if row.bad(s, m.Parents(s.Name)) {
				return dependencyError(i, s, row.rule, row.want)
			}
		}
	}
	if err := checkCycle(m); err != nil {
		return err
	}
	for i, s := range m.Streams {
		for _, p := range m.Parents(s.Name) {
			if m.DependsOn(p) {
				return dependencyError(i, s, "dependency_too_deep", "a parent that has no parent itself, unlike "+p)
			}
		}
	}
	for i, s := range m.Streams {
		if s.StateStream != "" && s.CoverageStrategy != CheckpointWindow {
			return dependencyError(i, s, "dependency_strategy_mismatch", "coverage_strategy "+CheckpointWindow)
		}
		if len(s.ParentStreams) > 0 && s.CoverageStrategy != ParentDetailAccounting {
			return dependencyError(i, s, "dependency_strategy_mismatch", "coverage_strategy "+ParentDetailAccounting)
		}
	}
	return nil
}

func dependencyError(i int, s StreamSpec, rule, want string) error {
	member := "parent_streams"
	if s.StateStream != "" {
		member = "state_stream"
	}
	return &ManifestError{fmt.Sprintf("/streams/%d/%s", i, member), rule, want}
}

// checkCycle searches the whole graph depth-first in three colours (R15).
func checkCycle(m *Manifest) error {
	const grey, black = 1, 2
	colour := make(map[string]int, len(m.Streams))
	var path []string
	var visit func(name string) bool
	visit = func(name string) bool {
		colour[name] = grey
		path = append(path, name)
		for _, p := range m.Parents(name) {
			if colour[p] == grey {
				path = append(path[slices.Index(path, p):], p)
				return true
			}
			if colour[p] == 0 && visit(p) {
				return true
			}
		}
		colour[name] = black
		path = path[:len(path)-1]
		return false
	}
	for i, s := range m.Streams {
		path = path[:0]
		if colour[s.Name] == 0 && visit(s.Name) {
			return dependencyError(i, s, "dependency_cycle", "no cycle, unlike "+strings.Join(path, " -> "))
		}
	}
	return nil
}
