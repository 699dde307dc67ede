package chromium

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// extractLimit bounds what one call extracts, in bytes of JSON.
const extractLimit = 1 << 20

type extraction struct {
	Page      bool     `json:"page"`
	Take      string   `json:"take"`
	Refs      []int    `json:"refs"`
	Attribute string   `json:"attribute"`
	Columns   []string `json:"columns"`
}

type extracted struct {
	Out [][]struct {
		V    json.RawMessage `json:"v"`
		Gone bool            `json:"gone"`
	} `json:"out"`
	Truncated bool `json:"truncated"`
}

// Extract runs the fixed extraction functions and returns their results by name, one value for each
// ref, in order. It returns page.ErrGone if a ref is gone.
func (lk *looks) Extract(ctx context.Context, items []page.Item) (page.Extracted, error) {
	var x page.Extracted
	err := lk.tab.call(ctx, func(ctx context.Context) error {
		main, err := lk.tab.frames.mainWorld(ctx)
		if err != nil {
			return err
		}
		x = page.Extracted{Items: make(map[string][]json.RawMessage, len(items))}
		left := extractLimit
		for _, it := range items {
			values, cut, err := lk.take(ctx, main, it)
			if err != nil {
				return fmt.Errorf("%s: %w", it.Name, err)
			}
			for i, v := range values {
				if left -= len(v); left < 0 {
					values, cut = values[:i], true
					break
				}
			}
			x.Items[it.Name], x.Truncated = values, x.Truncated || cut
		}
		return nil
	})
	if err != nil {
		return page.Extracted{}, err
	}
	x.Observation, err = lk.Read(ctx, page.Query{Digests: true, Limit: 1})
	if x.Observation != nil {
		x.Observation.Nodes = nil
	}
	return x, err
}

// take extracts one item, with one call for each document of its refs.
func (lk *looks) take(ctx context.Context, main *world, it page.Item) ([]json.RawMessage, bool, error) {
	if len(it.Refs) == 0 {
		got, err := main.extract(ctx, it, nil)
		if err != nil || len(got.Out) != 1 || len(got.Out[0]) != 1 {
			return nil, false, err
		}
		return []json.RawMessage{got.Out[0][0].V}, got.Truncated, nil
	}
	cut := len(it.Refs) > 5000
	refs := it.Refs[:min(len(it.Refs), 5000)]
	values := make([]json.RawMessage, len(refs))
	numbers := make(map[*world][]int)
	places := make(map[*world][]int)
	for i, r := range refs {
		w, n, err := lk.tab.frames.worldOf(r)
		if err != nil {
			return nil, false, err
		}
		numbers[w], places[w] = append(numbers[w], n), append(places[w], i)
	}
	for w, list := range numbers {
		got, err := w.extract(ctx, it, list)
		if err != nil {
			return nil, false, err
		}
		if len(got.Out) != 1 || len(got.Out[0]) > len(list) {
			return nil, false, fmt.Errorf("extract: %d answers to 1 question", len(got.Out))
		}
		for i, v := range got.Out[0] {
			if v.Gone {
				return nil, false, page.ErrGone
			}
			values[places[w][i]] = v.V
		}
		cut = cut || got.Truncated
	}
	return slices.DeleteFunc(values, func(v json.RawMessage) bool { return v == nil }), cut, nil
}

func (w *world) extract(ctx context.Context, it page.Item, refs []int) (extracted, error) {
	var got extracted
	ask := extraction{Page: len(it.Refs) == 0, Take: it.Take, Refs: append([]int{}, refs...), Attribute: it.Attribute,
		Columns: append([]string{}, it.Columns...)}
	err := w.call(ctx, &got, "extract", []extraction{ask})
	return got, err
}
