//go:build unix

package app

import "syscall"

// restrictUmask makes everything the host writes private (S148).
func restrictUmask() { syscall.Umask(0o077) }
