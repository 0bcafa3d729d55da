#include "go_asm.h"
#include "textflag.h"

// func prefetchHeads(units *Unit, n int, log *byte, room int, from int64, last int)
TEXT ·prefetchHeads(SB), NOSPLIT, $0-48
	MOVD units+0(FP), R0
	MOVD n+8(FP), R1
	MOVD log+16(FP), R2
	MOVD room+24(FP), R3
	MOVD from+32(FP), R4
	MOVD last+40(FP), R5

loop:
	MOVD Unit_PhysicalOffset(R0), R6
	ADD  $Unit__size, R0
	SUB  R4, R6
	CMP  R3, R6
	BHS  next // unsigned: what lies before from is above, too
	ADD  R2, R6
	PRFM (R6), PLDL2KEEP
	ADD  R5, R6
	PRFM (R6), PLDL2KEEP

next:
	SUB  $1, R1
	CBNZ R1, loop
	RET
