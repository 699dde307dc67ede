package network

// Covers reports whether the policy permits everything that the entry does.
func (p *Policy) Covers(e Entry) bool {
	for _, o := range p.entries {
		if o.Scheme != e.Scheme || o.Port != e.Port {
			continue
		}
		switch {
		case !e.Wildcard && o.covers(e.Host):
			return true
		case e.Wildcard && o.Wildcard && (o.Host == e.Host || o.covers(e.Host)):
			return true
		}
	}
	return false
}
