//go:build wasip1 && (abi || stdio)

package main

// trap ends the guest the way its kind says: unreachable, memory, integer.
func trap(kind string) {
	switch kind {
	case "memory":
		trapMemory()
	case "integer":
		trapInteger()
	default:
		trapUnreachable()
	}
}

func trapUnreachable()

func trapMemory()

func trapInteger()
