package abi

import (
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// readGap is DETAIL_GAP of §9.8.
func readGap(r *reader) Message {
	const bad = VDetailGapInvalidField
	m := &GapMessage{}
	m.Stream = r.stream("stream", VDetailGapInvalidStream, VDetailGapForUndeclaredStream, true)
	m.ParentStream = r.optText("parent_stream", bad, MaxStreamName)
	m.RecordKey = r.optKey("record_key", bad)
	m.Reason = r.optText("reason", bad, MaxReasonBytes)
	m.Retryable = r.boolean("retryable", bad)
	m.DetailLocator = r.object("detail_locator", bad, r.p.Limits.OpaqueBytes)
	m.ListCursor = r.object("list_cursor", bad, r.p.Limits.OpaqueBytes)
	m.LastError = r.object("last_error", bad, r.p.Limits.OpaqueBytes)
	m.GapID = r.optText("gap_id", bad, MaxIDBytes)
	r.optText("lease_id", bad, MaxIDBytes)
	return m
}

// optKey reads an optional record key: a text or a number, in text form.
func (r *reader) optKey(name string, bad Subtype) string {
	v := r.member(name)
	if v.Absent() {
		return ""
	}
	s, ok := keyText(v)
	switch {
	case !ok || Blank(s):
		r.fail(bad, name)
	case len(s) > MaxKeyBytes:
		r.limit(name, MaxKeyBytes)
	}
	return s
}

// readRecovered is DETAIL_GAP_RECOVERED of §9.8.
func readRecovered(r *reader) Message {
	const bad = VDetailGapRecoveredInvalid
	m := &RecoveredMessage{ReferenceOnly: true}
	m.GapID = r.text("gap_id", bad, MaxIDBytes)
	m.Stream = r.stream("stream", bad, bad, true)
	if only, ok := r.member("reference_only").Bool(); !ok || !only {
		r.fail(bad, "reference_only")
	}
	m.RecordKey = r.optKey("record_key", bad)
	r.optText("lease_id", bad, MaxIDBytes)
	return m
}

// readCoverage is §9.9.
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

// coverageKeys is checks 4 to 6 of §9.9.
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

// coverageStreams is checks 7 to 9 of §9.9.
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

// countOrNil reads a count that matters only when it is a safe integer of at
// least 0 (R65).
func (r *reader) countOrNil(name string) *int64 {
	if n, ok := r.member(name).SafeInteger(); ok && n >= 0 {
		return &n
	}
	return nil
}
