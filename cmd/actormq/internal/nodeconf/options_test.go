package nodeconf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
)

// TestOptionsWithoutEffectAreToldAtStart: the node logs a warning for each of Ignored.
func TestOptionsWithoutEffectAreToldAtStart(t *testing.T) {
	for _, key := range []string{
		"storePathDLedgerCommitLog",
		"bitMapLengthConsumeQueueExt",
		"useReentrantLockWhenPutMessage",
		"duplicationEnable",
		"messageIndexSafe",
		"maxMsgsNumBatch",
		"diskFallRecorded",
		"enableScheduleMessageStats",
		"enableScheduleAsyncDeliver",
		"scheduleAsyncDeliverMaxPendingLimit",
		"scheduleAsyncDeliverMaxResendNum2Blocked",
		"debugLockEnable",
		"dLegerGroup",
		"dLegerPeers",
		"dLegerSelfId",
		"preferredLeaderId",
		"isEnableBatchPush",
		"putMsgIndexHightWater",
	} {
		c := nodeconf.Default()
		require.NoError(t, c.Set(key, "true", "test"))
		require.Equal(t, []string{key}, c.Ignored)
	}
}

func TestOptionsThatWouldChangeTheFilesAreRefused(t *testing.T) {
	for key, value := range map[string]string{"enableDLegerCommitLog": "true", "readOnlyCommitLogStorePaths": "/old,/older"} {
		require.ErrorIs(t, nodeconf.Default().Set(key, value, "test"), nodeconf.ErrConfig)
	}
	require.NoError(t, nodeconf.Default().Set("enableDLegerCommitLog", "false", "test"))
}
