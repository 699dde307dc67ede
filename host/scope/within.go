package scope

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// within checks that s is no wider than the grant.
func within(s, grant abi.Scope) error {
	for i, e := range s.Streams {
		at := fmt.Sprintf("streams[%d]", i)
		g := slices.IndexFunc(grant.Streams, func(g abi.ScopeStream) bool { return g.Name == e.Name })
		if g < 0 {
			return &Error{"scope_exceeds_grant", at, "a stream that the grant contains"}
		}
		switch granted := grant.Streams[g]; {
		case !subset(e.Resources, granted.Resources):
			return &Error{"scope_exceeds_grant", at + ".resources", "resources that the grant contains"}
		case !subset(e.Fields, granted.Fields):
			return &Error{"scope_exceeds_grant", at + ".fields", "fields that the grant contains"}
		case !inside(e.TimeRange, granted.TimeRange):
			return &Error{"scope_exceeds_grant", at + ".time_range", "a time range inside of the grant's"}
		}
	}
	return nil
}

// subset reports whether granted contains asked; nil contains everything.
func subset(asked, granted []string) bool {
	if granted == nil {
		return true
	}
	if asked == nil {
		return false
	}
	for _, a := range asked {
		if !slices.Contains(granted, a) {
			return false
		}
	}
	return true
}

func inside(asked, granted *abi.TimeRange) bool {
	as, au := bounds(asked)
	gs, gu := bounds(granted)
	return as >= gs && au <= gu
}

// bounds returns a half-open range in microseconds.
func bounds(r *abi.TimeRange) (since, until int64) {
	since, until = math.MinInt64, math.MaxInt64
	if r == nil {
		return since, until
	}
	if t, ok := abi.ParseTime(r.Since); ok {
		since = t
	}
	if t, ok := abi.ParseTime(r.Until); ok {
		until = t
	}
	return since, until
}
