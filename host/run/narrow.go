package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// A Loss is what records of a stream hold and a scope leaves out: a record that
// is collected again replaces the one that is stored, and so loses it.
type Loss struct {
	Stream string
	Fields []string // sorted
}

func (l Loss) String() string {
	named := l.Fields
	if len(named) > 6 {
		named = append(slices.Clone(named[:5]), fmt.Sprintf("%d more fields", len(named)-5))
	}
	return fmt.Sprintf("stored records of %s also have %s, which those that are collected again would lose", l.Stream, strings.Join(named, ", "))
}

// lossSample is how many records of a stream are looked at, the newest.
const lossSample = 100

// Losses are what the newest stored records of a connection hold of the streams
// of a scope and its lists of fields leave out.
func Losses(ctx context.Context, st store.Records, id store.ConnectionID, s abi.Scope) ([]Loss, error) {
	var out []Loss
	for _, e := range s.Streams {
		if e.Fields == nil {
			continue
		}
		page, err := st.Records(ctx, store.RecordQuery{Connection: id, Stream: store.Stream(e.Name), Descending: true, Limit: lossSample})
		if err != nil {
			return nil, fmt.Errorf("look at what is stored of %s: %w", e.Name, err)
		}
		lost := map[string]bool{}
		for _, r := range page.Records {
			v, err := strictjson.Parse(r.Data, strictjson.ParseOptions{})
			if err != nil {
				continue
			}
			for name := range v.Members() {
				if !slices.Contains(e.Fields, name) {
					lost[abi.Cut(abi.Clean(name), 128)] = true
				}
			}
		}
		if len(lost) > 0 {
			out = append(out, Loss{e.Name, slices.Sorted(maps.Keys(lost))})
		}
	}
	return out, nil
}

// checkLosses refuses a caller's scope that would strip what is stored, unless
// the caller said so. A grant's is asked about when it is given.
func (p *Plan) checkLosses(ctx context.Context, st store.Store) error {
	if !p.explicit || p.Narrow {
		return nil
	}
	losses, err := Losses(ctx, st, p.Connection.ID, p.scope)
	if err != nil || len(losses) == 0 {
		return err
	}
	return NarrowRefusal(losses[0])
}

// NarrowRefusal is scope_narrows_stored: its caller may ask again and say that
// this is meant.
func NarrowRefusal(l Loss) *Refusal {
	return refuse("scope_narrows_stored", "%s; list these fields too, or agree with --narrow", l).with("field", "narrow").with("stream", l.Stream).with("lost", l.Fields)
}
