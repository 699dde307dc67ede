package jail

// Identity is what a worker was started as (tests only).
func (p *Process) Identity() Identity { return p.config.Identity }

// Judged is for tests of what is called full.
func (i Isolation) Judged() Isolation { return i.judged() }
