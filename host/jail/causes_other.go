//go:build !linux

package jail

import "runtime"

func whyNoLayer() (cause, remedy string) {
	return runtime.GOOS + " has no such layer; a worker is a process with limits", "run untrusted connectors on Linux"
}

var whyNoUID, whyNoNamespaces, whyNoLandlock, whyNoSeccomp, whyNoLimits, whyNoGroup = whyNoLayer, whyNoLayer, whyNoLayer, whyNoLayer, whyNoLayer, whyNoLayer
