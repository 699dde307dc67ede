package jail

// Judged is for tests of what is called full.
func (i Isolation) Judged() Isolation { return i.judged() }
