package tidy_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// storeOptions are the options of the original's MessageStoreConfig.
var storeOptions = []string{
	"storePathRootDir", "storePathCommitLog", "readOnlyCommitLogStorePaths", "storePathDLedgerCommitLog",
	"mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "enableConsumeQueueExt", "mappedFileSizeConsumeQueueExt",
	"bitMapLengthConsumeQueueExt", "flushDiskType", "flushIntervalCommitLog", "flushCommitLogTimed",
	"flushCommitLogLeastPages", "flushCommitLogThoroughInterval", "commitIntervalCommitLog",
	"commitCommitLogLeastPages", "commitCommitLogThoroughInterval", "flushIntervalConsumeQueue",
	"flushConsumeQueueLeastPages", "flushConsumeQueueThoroughInterval", "flushLeastPagesWhenWarmMapedFile",
	"warmMapedFileEnable", "syncFlushTimeout", "slaveTimeout", "transientStorePoolEnable", "transientStorePoolSize",
	"fastFailIfNoBufferInStorePool", "useReentrantLockWhenPutMessage", "osPageCacheBusyTimeOutMills", "maxMessageSize",
	"checkCRCOnRecover", "duplicationEnable", "messageIndexEnable", "messageIndexSafe", "maxHashSlotNum", "maxIndexNum",
	"maxMsgsNumBatch", "defaultQueryMaxNum", "maxTransferBytesOnMessageInMemory", "maxTransferCountOnMessageInMemory",
	"maxTransferBytesOnMessageInDisk", "maxTransferCountOnMessageInDisk", "accessMessageInMemoryMaxRatio",
	"diskFallRecorded", "offsetCheckInSlave", "fileReservedTime", "deleteWhen", "diskMaxUsedSpaceRatio",
	"cleanFileForciblyEnable", "cleanResourceInterval", "deleteCommitLogFilesInterval",
	"deleteConsumeQueueFilesInterval", "destroyMapedFileIntervalForcibly", "redeleteHangedFileInterval", "brokerRole",
	"haListenPort", "haMasterAddress", "haSendHeartbeatInterval", "haHousekeepingInterval", "haTransferBatchSize",
	"haSlaveFallbehindMax", "messageDelayLevel", "flushDelayOffsetInterval", "enableScheduleMessageStats",
	"enableScheduleAsyncDeliver", "scheduleAsyncDeliverMaxPendingLimit", "scheduleAsyncDeliverMaxResendNum2Blocked",
	"enableLmq", "enableMultiDispatch", "maxLmqConsumeQueueNum", "debugLockEnable", "enableDLegerCommitLog",
	"dLegerGroup", "dLegerPeers", "dLegerSelfId", "preferredLeaderId", "isEnableBatchPush", "putMsgIndexHightWater",
}

// optionRows is the rule: every option has a row in docs/OPTIONS.md, which says what it does and names a test that there is.
func optionRows(all []*source, text string) []string {
	rows, problems := rows("OPTIONS.md", text, 3)
	needed := map[string]string{}
	for _, name := range storeOptions {
		needed[name] = "spec/store.md §1.3"
	}
	problems = append(problems, compare("OPTIONS.md", rows, needed, needed)...)
	tests := map[string]bool{}
	for _, s := range all {
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		words := strings.Split(line, "`")
		if name := words[len(words)-2]; !tests[name] {
			problems = append(problems, "docs/OPTIONS.md: "+words[1]+": there is no test "+name)
		}
	}
	return problems
}

func TestEveryStoreOptionIsInTheTable(t *testing.T) {
	require.Len(t, storeOptions, 78)
	none(t, optionRows(sources(t), document(t, "OPTIONS.md")))
}
