package client

import (
	"context"
	"net/url"
	"strconv"
)

// page is the number of entries of one request.
const page = 100

// list is a page of a list.
type list[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// each calls do with every entry of a list, page by page, until do returns false.
func each[T any](ctx context.Context, c *transport, path string, query url.Values,
	do func(T) (more bool, err error)) error {
	q := url.Values{"limit": {strconv.Itoa(page)}}
	for name, values := range query {
		q[name] = values
	}
	for {
		var got list[T]
		if err := c.get(ctx, path, q, &got); err != nil {
			return err
		}
		for _, v := range got.Data {
			if more, err := do(v); err != nil || !more {
				return err
			}
		}
		if got.NextCursor == nil || *got.NextCursor == "" {
			return nil
		}
		q.Set("cursor", *got.NextCursor)
	}
}

// all reads a whole list.
func all[T any](ctx context.Context, c *transport, path string, query url.Values) ([]T, error) {
	out := []T{}
	err := each(ctx, c, path, query, func(v T) (bool, error) {
		out = append(out, v)
		return true, nil
	})
	return out, err
}
