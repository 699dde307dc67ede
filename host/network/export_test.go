package network

import "io"

// Scrub is a scrubber over forms by handle.
func Scrub(src io.Reader, forms map[string][]string) io.Reader {
	s := &Seals{by: map[string]seal{}}
	for handle, list := range forms {
		var sealed seal
		for _, f := range list {
			sealed.forms = append(sealed.forms, []byte(f))
		}
		s.by[handle] = sealed
	}
	return newScrubber(src, s.echoes())
}
