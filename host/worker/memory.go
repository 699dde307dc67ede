package worker

// peak notes the largest linear memory that was asked for and granted.
type peak struct{ bytes uint64 }

func (p *peak) note(size uint64) { p.bytes = max(p.bytes, size) }
