package abi

// A Rate is the request rate to each origin that a connector declares. It can only lower
// the host's; zero members leave the host's.
type Rate struct {
	PerSecond float64 `json:"requests_per_second,omitempty"`
	Burst     int64   `json:"burst,omitempty"`
}

// network reads the members of the binding.
func (r *manifestReader) network(a at, b *Binding) {
	b.Hosts = r.texts(a.member("hosts"), 256)
	b.Rate = r.rate(a.member("rate"))
}

func (r *manifestReader) rate(a at) Rate {
	if !r.object(a, false) {
		return Rate{}
	}
	var out Rate
	if per := a.member("requests_per_second"); !per.Absent() {
		n, ok := per.Float64()
		if !ok || n < 0.001 || n > 100 {
			r.fail(per, "rate", "a number from 0.001 to 100")
		}
		out.PerSecond = n
	}
	if burst := a.member("burst"); !burst.Absent() {
		n, ok := burst.SafeInteger()
		if !ok || n < 1 || n > 100 {
			r.fail(burst, "rate", "an integer from 1 to 100")
		}
		out.Burst = n
	}
	return out
}
