//go:build wasip1 && (abi || stdio)

#include "textflag.h"

// Go has no way to trap on purpose: the compiler checks first.

TEXT ·trapUnreachable(SB), NOSPLIT, $0-0
	UNDEF
	RET

TEXT ·trapMemory(SB), NOSPLIT, $0-0
	I32Const $-1
	I32Load $0
	Drop
	RET

TEXT ·trapInteger(SB), NOSPLIT, $0-0
	I32Const $1
	I32Const $0
	I32DivU
	Drop
	RET
