//go:build !linux

package chromium

import (
	"errors"
	"net"
	"os/exec"
)

const insideURL = ""

func canUnshare() error { return errors.ErrUnsupported }

func ownNetwork(*exec.Cmd) {}

func listenInside(int) (net.Listener, error) { return nil, errors.ErrUnsupported }
