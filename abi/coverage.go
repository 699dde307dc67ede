package abi

import (
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// CoverageMessage is a DETAIL_COVERAGE. Keys are in text form.
type CoverageMessage struct {
	ReferenceOnly    bool     `json:"reference_only"` // always true
	StateStream      string   `json:"state_stream"`
	Stream           string   `json:"stream"`
	RequiredKeys     []string `json:"required_keys"`
	HydratedKeys     []string `json:"hydrated_keys"`
	GapKeys          []string `json:"gap_keys,omitempty"`
	OptionalSkipKeys []string `json:"optional_skip_keys,omitempty"`
	Considered       *int64   `json:"considered,omitempty"` // as the connector counts
	Covered          *int64   `json:"covered,omitempty"`
}

// Type returns DETAIL_COVERAGE.
func (*CoverageMessage) Type() string { return coverageKind.name }
func (*CoverageMessage) message()     {}

var coverageKind = kind{
	name:  "DETAIL_COVERAGE",
	step:  StepMessage,
	call:  CallCoverage,
	read:  readCoverage,
	limit: func(l Limits) int { return l.CoveragePerRun },
	faults: []fault{
		{VCoverageDuplicateKey, "lists a key twice"},
		{VCoverageDuplicateReport, "repeats a report of the same stream and state_stream"},
		{VCoverageForStateStreamChild, "reports a stream that is covered by its state_stream"},
		{VCoverageForUndeclaredStream, "named a stream that is not in scope"},
		{VCoverageInvalidKeys, "has a key list of the wrong shape"},
		{VCoverageInvalidReferenceOnly, "needs reference_only: true"},
		{VCoverageInvalidStateStream, "needs the name of a state_stream"},
		{VCoverageInvalidStream, "needs the name of a stream"},
		{VCoverageKeyInTwoSets, "lists a key in two outcomes"},
		{VCoverageKeyNotRequired, "lists a key that is not in required_keys"},
		{VCoverageParentNotDeclared, "names a state_stream that is no parent of the stream"},
	},
}

const (
	VCoverageDuplicateKey         Subtype = "coverage_duplicate_key"
	VCoverageDuplicateReport      Subtype = "coverage_duplicate_report"
	VCoverageForStateStreamChild  Subtype = "coverage_for_state_stream_child"
	VCoverageForUndeclaredStream  Subtype = "coverage_for_undeclared_stream"
	VCoverageInvalidKeys          Subtype = "coverage_invalid_keys"
	VCoverageInvalidReferenceOnly Subtype = "coverage_invalid_reference_only"
	VCoverageInvalidStateStream   Subtype = "coverage_invalid_state_stream"
	VCoverageInvalidStream        Subtype = "coverage_invalid_stream"
	VCoverageKeyInTwoSets         Subtype = "coverage_key_in_two_sets"
	VCoverageKeyNotRequired       Subtype = "coverage_key_not_required"
	VCoverageParentNotDeclared    Subtype = "coverage_parent_not_declared"
)

// readCoverage checks a DETAIL_COVERAGE.
func readCoverage(r *reader) Message {
	m := &CoverageMessage{ReferenceOnly: true}
	if only, ok := r.member("reference_only").Bool(); !ok || !only {
		r.fail(VCoverageInvalidReferenceOnly, "reference_only")
	}
	m.StateStream = r.stream("state_stream", VCoverageInvalidStateStream, VCoverageForUndeclaredStream, true)
	m.Stream = r.stream("stream", VCoverageInvalidStream, VCoverageForUndeclaredStream, true)
	m.RequiredKeys = r.keys("required_keys", true)
	m.HydratedKeys = r.keys("hydrated_keys", true)
	m.GapKeys = r.keys("gap_keys", false)
	m.OptionalSkipKeys = r.keys("optional_skip_keys", false)
	if r.bad == nil {
		r.coverageKeys(m)
	}
	if r.bad == nil {
		r.coverageStreams(m)
	}
	m.Considered, m.Covered = r.countOrNil("considered"), r.countOrNil("covered")
	if r.bad == nil {
		r.p.reports[[2]string{m.Stream, m.StateStream}] = true
	}
	return m
}

// keys reads a key list; a missing optional one is nil.
func (r *reader) keys(name string, required bool) []string {
	v := r.member(name)
	if v.Absent() && !required {
		return nil
	}
	if v.Kind != strictjson.KindArray {
		r.fail(VCoverageInvalidKeys, name)
		return nil
	}
	out := []string{}
	for item := range v.Items() {
		if len(out) == r.p.Limits.CoverageKeys {
			r.limit(name, r.p.Limits.CoverageKeys)
			return nil
		}
		k, ok := keyText(item)
		if !ok {
			r.fail(VCoverageInvalidKeys, name)
			return nil
		}
		if len(k) > MaxKeyBytes {
			r.limit(name, MaxKeyBytes)
			return nil
		}
		out = append(out, k)
	}
	return out
}

// coverageKeys checks that no list has a key twice, that every outcome belongs to a
// required key, and that no key has two outcomes.
func (r *reader) coverageKeys(m *CoverageMessage) {
	lists := []struct {
		name string
		keys []string
	}{
		{"required_keys", m.RequiredKeys}, {"hydrated_keys", m.HydratedKeys},
		{"gap_keys", m.GapKeys}, {"optional_skip_keys", m.OptionalSkipKeys},
	}
	sets := make([]map[string]bool, len(lists))
	for i, l := range lists {
		sets[i] = make(map[string]bool, len(l.keys))
		for _, k := range l.keys {
			if sets[i][k] {
				r.fail(VCoverageDuplicateKey, l.name)
				return
			}
			sets[i][k] = true
		}
	}
	for i, l := range lists[1:] {
		for _, k := range l.keys {
			if !sets[0][k] {
				r.fail(VCoverageKeyNotRequired, lists[i+1].name)
				return
			}
		}
	}
	for i := 2; i < len(lists); i++ {
		for _, k := range lists[i].keys {
			for j := 1; j < i; j++ {
				if sets[j][k] {
					r.fail(VCoverageKeyInTwoSets, lists[i].name)
					return
				}
			}
		}
	}
}

// coverageStreams checks the two streams against the manifest, and that this pair was not
// reported before.
func (r *reader) coverageStreams(m *CoverageMessage) {
	s := r.p.Manifest.Stream(m.Stream)
	switch {
	case s.StateStream != "":
		r.fail(VCoverageForStateStreamChild, "stream")
	case len(s.ParentStreams) > 0 && !slices.Contains(s.ParentStreams, m.StateStream):
		v := r.fail(VCoverageParentNotDeclared, "state_stream")
		v.Received, v.Expected = m.StateStream, slices.Clone(s.ParentStreams)
	case r.p.reports[[2]string{m.Stream, m.StateStream}]:
		r.fail(VCoverageDuplicateReport, "")
	}
}

// countOrNil reads a count. Anything but a safe integer of at least 0 is ignored.
func (r *reader) countOrNil(name string) *int64 {
	if n, ok := r.member(name).SafeInteger(); ok && n >= 0 {
		return &n
	}
	return nil
}
