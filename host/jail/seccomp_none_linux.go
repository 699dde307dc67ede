//go:build linux && !amd64 && !arm64

package jail

// policy is empty: nobody went through the system calls of this architecture.
type policy struct{}

func filterA(int, bool) policy { return policy{} }

func filterB(int) policy { return policy{} }

func installFilter(policy) error { return ErrUnsupported }
