package badger

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// OpenURL opens "badger:DIR" or "memory:", either with a query:
//
//	fail_state=STREAM  refuse the cursor of that stream (R95)
//	per_stream=BOOL    ask for one commit per stream (R92)
//	memory=small       the small memory profile (S118)
//	allow_network_fs=BOOL
//
// What the query sets wins over opts. Unknown parameters are an error.
func OpenURL(raw string, opts Options) (*Store, error) {
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || (scheme != "badger" && scheme != "memory") {
		return nil, fmt.Errorf("store %q: want badger:DIR or memory", raw)
	}
	dir, query, _ := strings.Cut(rest, "?")
	if err := applyQuery(query, &opts); err != nil {
		return nil, fmt.Errorf("store %q: %w", raw, err)
	}
	if scheme == "memory" {
		if dir != "" {
			return nil, fmt.Errorf("store %q: memory takes no directory", raw)
		}
		return OpenMemory(opts)
	}
	if dir == "" {
		return nil, fmt.Errorf("store %q: directory missing", raw)
	}
	return Open(dir, opts)
}

func applyQuery(query string, opts *Options) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for name, v := range values {
		value := v[len(v)-1]
		switch name {
		case "fail_state":
			opts.FailState = store.Stream(value)
		case "per_stream":
			opts.PerStream, err = strconv.ParseBool(value)
		case "allow_network_fs":
			opts.AllowNetworkFS, err = strconv.ParseBool(value)
		case "memory":
			opts.Small = value == "small"
			if value != "small" && value != "normal" {
				err = fmt.Errorf("want small or normal, not %q", value)
			}
		default:
			err = fmt.Errorf("unknown parameter")
		}
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return nil
}
