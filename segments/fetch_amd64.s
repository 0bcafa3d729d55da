#include "textflag.h"

// func prefetch(first *byte, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ n+8(FP), CX
	ADDQ AX, CX
	ANDQ $~63, AX

line:
	PREFETCHT1 (AX)
	ADDQ $64, AX
	CMPQ AX, CX
	JCS  line
	RET
