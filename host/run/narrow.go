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

// A Loss lists the fields that stored records of a stream have and a scope omits: collecting such a record again
// replaces it and loses those fields.
type Loss struct {
	Stream string
	Fields []string // sorted names
}

func (l Loss) String() string {
	named := l.Fields
	if len(named) > 6 {
		named = append(slices.Clone(named[:5]), fmt.Sprintf("%d more fields", len(named)-5))
	}
	return fmt.Sprintf("stored records of %s also have %s, which those that are collected again would lose", l.Stream,
		strings.Join(named, ", "))
}

// lossSample is how many of the newest records of a stream Losses examines.
const lossSample = 100

// Losses returns the fields that the newest stored records of a connection have and the field lists of a scope
// omit.
func Losses(ctx context.Context, st store.Records, id store.ConnectionID, s abi.Scope) ([]Loss, error) {
	var out []Loss
	for _, e := range s.Streams {
		if e.Fields == nil {
			continue
		}
		page, err := st.Records(ctx,
			store.RecordQuery{Connection: id, Stream: store.Stream(e.Name), Descending: true, Limit: lossSample})
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

// checkLosses refuses an explicit scope that would remove stored fields, unless Narrow is set. The scope of a
// grant is checked when it is approved.
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

// NarrowRefusal returns the refusal scope_narrows_stored. The caller may repeat the request and confirm the
// loss.
func NarrowRefusal(l Loss) *Refusal {
	return refuse("scope_narrows_stored", "%s; list these fields too, or agree with --narrow", l).with("field",
		"narrow").with("stream", l.Stream).with("lost", l.Fields)
}
