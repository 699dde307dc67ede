package jail

// Walls says which layers to build. The zero value builds every layer the
// machine has. Leaving one out is for measuring its price and for proving that
// another one holds without it; no configuration of a host reaches it (S19).
type Walls struct {
	// Off leaves out all of them, limits included.
	Off          bool `json:"off,omitempty"`
	NoNamespaces bool `json:"no_namespaces,omitempty"`
	NoUID        bool `json:"no_uid,omitempty"`
	NoLandlock   bool `json:"no_landlock,omitempty"`
	NoSeccomp    bool `json:"no_seccomp,omitempty"`
	NoLimits     bool `json:"no_limits,omitempty"`
}

// resolved spells Off out.
func (w Walls) resolved() Walls {
	if w.Off {
		return Walls{Off: true, NoNamespaces: true, NoUID: true, NoLandlock: true, NoSeccomp: true, NoLimits: true}
	}
	return w
}
