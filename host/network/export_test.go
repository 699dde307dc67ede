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

// Hidden is a text as recordings have it, and what a guest gets of that. held
// stands for value.
func Hidden(text, held, value string, forms [][]byte) (hidden, shown string) {
	v := newValues()
	if value != "" {
		v.secret("token", held, value, forms)
	}
	b := v.hideBody([]byte(text), nil, func(string, int) {})
	return string(b), string(v.show(b))
}
