package network

import "io"

// Scrub is a scrubber over forms by handle.
func Scrub(src io.Reader, forms map[string][]string) io.Reader {
	s := &Seals{}
	for handle, list := range forms {
		var of [][]byte
		for _, f := range list {
			of = append(of, []byte(f))
		}
		s.Add("", handle, "", of, nil)
	}
	return newScrubber(src, s.echoes())
}
