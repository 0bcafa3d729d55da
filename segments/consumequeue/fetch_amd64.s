#include "go_asm.h"
#include "textflag.h"

// func prefetchHeads(units *Unit, n int, log *byte, room int, from int64, last int)
TEXT ·prefetchHeads(SB), NOSPLIT, $0-48
	MOVQ units+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ log+16(FP), DI
	MOVQ room+24(FP), DX
	MOVQ from+32(FP), R8
	MOVQ last+40(FP), R9

loop:
	MOVQ Unit_PhysicalOffset(SI), AX
	ADDQ $Unit__size, SI
	SUBQ R8, AX
	CMPQ AX, DX
	JCC  next // unsigned: what lies before from is above, too
	ADDQ DI, AX
	PREFETCHT1 (AX)
	PREFETCHT1 (AX)(R9*1)

next:
	DECQ CX
	JNZ  loop
	RET
