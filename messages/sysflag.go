package messages

// Bits of a record's SYSFLAG (spec/store.md §2.2).
const (
	SysFlagCompressed int32 = 0x1
	SysFlagMultiTags  int32 = 0x2

	SysFlagTransactionMask     int32 = 0xC
	SysFlagTransactionNone     int32 = 0x0
	SysFlagTransactionPrepared int32 = 0x4
	SysFlagTransactionCommit   int32 = 0x8
	SysFlagTransactionRollback int32 = 0xC

	SysFlagBornHostV6  int32 = 0x10
	SysFlagStoreHostV6 int32 = 0x20

	SysFlagCompressionMask int32 = 0x700
	SysFlagCompressionLZ4  int32 = 0x100
	SysFlagCompressionZSTD int32 = 0x200
	SysFlagCompressionZLIB int32 = 0x300 // and 0: the legacy type is zlib too
)

// TransactionOf returns the transaction bits of a system flag.
func TransactionOf(sysFlag int32) int32 { return sysFlag & SysFlagTransactionMask }

// TakesQueueOffset tells whether a record with this flag advances its queue: prepared and rollback records do not.
func TakesQueueOffset(sysFlag int32) bool {
	t := TransactionOf(sysFlag)
	return t == SysFlagTransactionNone || t == SysFlagTransactionCommit
}
