package remoting

import "strconv"

// Request codes that 4.9.7 handles (spec/remoting.md §4). Those from 205 to 329 are mostly for tools; 39, 40, 220, 221
// and 326 go from the broker to a client, 307 and 309 both ways.
const (
	RequestSendMessage                      = 10
	RequestPullMessage                      = 11
	RequestQueryMessage                     = 12
	RequestQueryConsumerOffset              = 14
	RequestUpdateConsumerOffset             = 15
	RequestUpdateAndCreateTopic             = 17
	RequestGetAllTopicConfig                = 21
	RequestUpdateBrokerConfig               = 25
	RequestGetBrokerConfig                  = 26
	RequestGetBrokerRuntimeInfo             = 28
	RequestSearchOffsetByTimestamp          = 29
	RequestGetMaxOffset                     = 30
	RequestGetMinOffset                     = 31
	RequestGetEarliestMsgStoreTime          = 32
	RequestViewMessageByID                  = 33
	RequestHeartbeat                        = 34
	RequestUnregisterClient                 = 35
	RequestConsumerSendMsgBack              = 36
	RequestEndTransaction                   = 37
	RequestGetConsumerListByGroup           = 38
	RequestCheckTransactionState            = 39
	RequestNotifyConsumerIdsChanged         = 40
	RequestLockBatchMQ                      = 41
	RequestUnlockBatchMQ                    = 42
	RequestGetAllConsumerOffset             = 43
	RequestGetAllDelayOffset                = 45
	RequestCheckClientConfig                = 46
	RequestUpdateAndCreateACLConfig         = 50
	RequestDeleteACLConfig                  = 51
	RequestGetBrokerClusterACLInfo          = 52
	RequestUpdateGlobalWhiteAddrsConfig     = 53
	RequestGetBrokerClusterACLConfig        = 54
	RequestPutKVConfig                      = 100
	RequestGetKVConfig                      = 101
	RequestDeleteKVConfig                   = 102
	RequestRegisterBroker                   = 103
	RequestUnregisterBroker                 = 104
	RequestGetRouteInfoByTopic              = 105
	RequestGetBrokerClusterInfo             = 106
	RequestUpdateAndCreateSubscriptionGroup = 200
	RequestGetAllSubscriptionGroupConfig    = 201
	RequestGetTopicStatsInfo                = 202
	RequestGetConsumerConnectionList        = 203
	RequestGetProducerConnectionList        = 204
	RequestWipeWritePermOfBroker            = 205
	RequestGetAllTopicListFromNameServer    = 206
	RequestDeleteSubscriptionGroup          = 207
	RequestGetConsumeStats                  = 208
	RequestDeleteTopicInBroker              = 215
	RequestDeleteTopicInNamesrv             = 216
	RequestGetKVListByNamespace             = 219
	RequestResetConsumerClientOffset        = 220
	RequestGetConsumerStatusFromClient      = 221
	RequestInvokeBrokerToResetOffset        = 222
	RequestInvokeBrokerToGetConsumerStatus  = 223
	RequestGetTopicsByCluster               = 224
	RequestQueryTopicConsumeByWho           = 300
	RequestQueryConsumeTimeSpan             = 303
	RequestGetSystemTopicListFromNS         = 304
	RequestGetSystemTopicListFromBroker     = 305
	RequestCleanExpiredConsumeQueue         = 306
	RequestGetConsumerRunningInfo           = 307
	RequestQueryCorrectionOffset            = 308
	RequestConsumeMessageDirectly           = 309
	RequestSendMessageV2                    = 310
	RequestGetUnitTopicList                 = 311
	RequestGetHasUnitSubTopicList           = 312
	RequestGetHasUnitSubUnunitTopicList     = 313
	RequestCloneGroupOffset                 = 314
	RequestViewBrokerStatsData              = 315
	RequestCleanUnusedTopic                 = 316
	RequestGetBrokerConsumeStats            = 317
	RequestUpdateNamesrvConfig              = 318
	RequestGetNamesrvConfig                 = 319
	RequestSendBatchMessage                 = 320
	RequestQueryConsumeQueue                = 321
	RequestQueryDataVersion                 = 322
	RequestDrainBroker                      = 9101 // our own: stop, and send producers elsewhere first
	RequestPromoteBroker                    = 9102 // our own: a slave becomes the master
	RequestRelayBroker                      = 9103 // our own: what comes on this connection is relayed for a client
	RequestRelayHello                       = 9104 // our own: for which client, and the proof of it
	RequestNodeHello                        = 9105 // our own: a node of a group asks for itself, and the proof of it
	RequestResumeCheckHalfMessage           = 323
	RequestSendReplyMessage                 = 324
	RequestSendReplyMessageV2               = 325
	RequestPushReplyMessageToClient         = 326
	RequestAddWritePermOfBroker             = 327
	RequestGetAllProducerInfo               = 328
	RequestDeleteExpiredCommitLog           = 329
)

var requestNames = map[int]string{
	RequestSendMessage:                      "SEND_MESSAGE",
	RequestPullMessage:                      "PULL_MESSAGE",
	RequestQueryMessage:                     "QUERY_MESSAGE",
	RequestQueryConsumerOffset:              "QUERY_CONSUMER_OFFSET",
	RequestUpdateConsumerOffset:             "UPDATE_CONSUMER_OFFSET",
	RequestUpdateAndCreateTopic:             "UPDATE_AND_CREATE_TOPIC",
	RequestGetAllTopicConfig:                "GET_ALL_TOPIC_CONFIG",
	RequestUpdateBrokerConfig:               "UPDATE_BROKER_CONFIG",
	RequestGetBrokerConfig:                  "GET_BROKER_CONFIG",
	RequestGetBrokerRuntimeInfo:             "GET_BROKER_RUNTIME_INFO",
	RequestSearchOffsetByTimestamp:          "SEARCH_OFFSET_BY_TIMESTAMP",
	RequestGetMaxOffset:                     "GET_MAX_OFFSET",
	RequestGetMinOffset:                     "GET_MIN_OFFSET",
	RequestGetEarliestMsgStoreTime:          "GET_EARLIEST_MSG_STORETIME",
	RequestViewMessageByID:                  "VIEW_MESSAGE_BY_ID",
	RequestHeartbeat:                        "HEART_BEAT",
	RequestUnregisterClient:                 "UNREGISTER_CLIENT",
	RequestConsumerSendMsgBack:              "CONSUMER_SEND_MSG_BACK",
	RequestEndTransaction:                   "END_TRANSACTION",
	RequestGetConsumerListByGroup:           "GET_CONSUMER_LIST_BY_GROUP",
	RequestCheckTransactionState:            "CHECK_TRANSACTION_STATE",
	RequestNotifyConsumerIdsChanged:         "NOTIFY_CONSUMER_IDS_CHANGED",
	RequestLockBatchMQ:                      "LOCK_BATCH_MQ",
	RequestUnlockBatchMQ:                    "UNLOCK_BATCH_MQ",
	RequestGetAllConsumerOffset:             "GET_ALL_CONSUMER_OFFSET",
	RequestGetAllDelayOffset:                "GET_ALL_DELAY_OFFSET",
	RequestCheckClientConfig:                "CHECK_CLIENT_CONFIG",
	RequestUpdateAndCreateACLConfig:         "UPDATE_AND_CREATE_ACL_CONFIG",
	RequestDeleteACLConfig:                  "DELETE_ACL_CONFIG",
	RequestGetBrokerClusterACLInfo:          "GET_BROKER_CLUSTER_ACL_INFO",
	RequestUpdateGlobalWhiteAddrsConfig:     "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG",
	RequestGetBrokerClusterACLConfig:        "GET_BROKER_CLUSTER_ACL_CONFIG",
	RequestPutKVConfig:                      "PUT_KV_CONFIG",
	RequestGetKVConfig:                      "GET_KV_CONFIG",
	RequestDeleteKVConfig:                   "DELETE_KV_CONFIG",
	RequestRegisterBroker:                   "REGISTER_BROKER",
	RequestUnregisterBroker:                 "UNREGISTER_BROKER",
	RequestGetRouteInfoByTopic:              "GET_ROUTEINFO_BY_TOPIC",
	RequestGetBrokerClusterInfo:             "GET_BROKER_CLUSTER_INFO",
	RequestUpdateAndCreateSubscriptionGroup: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP",
	RequestGetAllSubscriptionGroupConfig:    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG",
	RequestGetTopicStatsInfo:                "GET_TOPIC_STATS_INFO",
	RequestGetConsumerConnectionList:        "GET_CONSUMER_CONNECTION_LIST",
	RequestGetProducerConnectionList:        "GET_PRODUCER_CONNECTION_LIST",
	RequestWipeWritePermOfBroker:            "WIPE_WRITE_PERM_OF_BROKER",
	RequestGetAllTopicListFromNameServer:    "GET_ALL_TOPIC_LIST_FROM_NAMESERVER",
	RequestDeleteSubscriptionGroup:          "DELETE_SUBSCRIPTIONGROUP",
	RequestGetConsumeStats:                  "GET_CONSUME_STATS",
	RequestDeleteTopicInBroker:              "DELETE_TOPIC_IN_BROKER",
	RequestDeleteTopicInNamesrv:             "DELETE_TOPIC_IN_NAMESRV",
	RequestGetKVListByNamespace:             "GET_KVLIST_BY_NAMESPACE",
	RequestResetConsumerClientOffset:        "RESET_CONSUMER_CLIENT_OFFSET",
	RequestGetConsumerStatusFromClient:      "GET_CONSUMER_STATUS_FROM_CLIENT",
	RequestInvokeBrokerToResetOffset:        "INVOKE_BROKER_TO_RESET_OFFSET",
	RequestInvokeBrokerToGetConsumerStatus:  "INVOKE_BROKER_TO_GET_CONSUMER_STATUS",
	RequestGetTopicsByCluster:               "GET_TOPICS_BY_CLUSTER",
	RequestQueryTopicConsumeByWho:           "QUERY_TOPIC_CONSUME_BY_WHO",
	RequestQueryConsumeTimeSpan:             "QUERY_CONSUME_TIME_SPAN",
	RequestGetSystemTopicListFromNS:         "GET_SYSTEM_TOPIC_LIST_FROM_NS",
	RequestGetSystemTopicListFromBroker:     "GET_SYSTEM_TOPIC_LIST_FROM_BROKER",
	RequestCleanExpiredConsumeQueue:         "CLEAN_EXPIRED_CONSUMEQUEUE",
	RequestGetConsumerRunningInfo:           "GET_CONSUMER_RUNNING_INFO",
	RequestQueryCorrectionOffset:            "QUERY_CORRECTION_OFFSET",
	RequestConsumeMessageDirectly:           "CONSUME_MESSAGE_DIRECTLY",
	RequestSendMessageV2:                    "SEND_MESSAGE_V2",
	RequestGetUnitTopicList:                 "GET_UNIT_TOPIC_LIST",
	RequestGetHasUnitSubTopicList:           "GET_HAS_UNIT_SUB_TOPIC_LIST",
	RequestGetHasUnitSubUnunitTopicList:     "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST",
	RequestCloneGroupOffset:                 "CLONE_GROUP_OFFSET",
	RequestViewBrokerStatsData:              "VIEW_BROKER_STATS_DATA",
	RequestCleanUnusedTopic:                 "CLEAN_UNUSED_TOPIC",
	RequestGetBrokerConsumeStats:            "GET_BROKER_CONSUME_STATS",
	RequestUpdateNamesrvConfig:              "UPDATE_NAMESRV_CONFIG",
	RequestGetNamesrvConfig:                 "GET_NAMESRV_CONFIG",
	RequestSendBatchMessage:                 "SEND_BATCH_MESSAGE",
	RequestQueryConsumeQueue:                "QUERY_CONSUME_QUEUE",
	RequestQueryDataVersion:                 "QUERY_DATA_VERSION",
	RequestDrainBroker:                      "DRAIN_BROKER",
	RequestPromoteBroker:                    "PROMOTE_BROKER",
	RequestRelayBroker:                      "RELAY_BROKER",
	RequestRelayHello:                       "RELAY_HELLO",
	RequestNodeHello:                        "NODE_HELLO",
	RequestResumeCheckHalfMessage:           "RESUME_CHECK_HALF_MESSAGE",
	RequestSendReplyMessage:                 "SEND_REPLY_MESSAGE",
	RequestSendReplyMessageV2:               "SEND_REPLY_MESSAGE_V2",
	RequestPushReplyMessageToClient:         "PUSH_REPLY_MESSAGE_TO_CLIENT",
	RequestAddWritePermOfBroker:             "ADD_WRITE_PERM_OF_BROKER",
	RequestGetAllProducerInfo:               "GET_ALL_PRODUCER_INFO",
	RequestDeleteExpiredCommitLog:           "DELETE_EXPIRED_COMMITLOG",
}

// Response codes that a peer puts on the wire (spec/remoting.md §19).
const (
	ResponseSuccess                            = 0
	ResponseSystemError                        = 1
	ResponseSystemBusy                         = 2
	ResponseRequestCodeNotSupported            = 3
	ResponseFlushDiskTimeout                   = 10
	ResponseSlaveNotAvailable                  = 11
	ResponseFlushSlaveTimeout                  = 12
	ResponseMessageIllegal                     = 13
	ResponseServiceNotAvailable                = 14
	ResponseNoPermission                       = 16
	ResponseTopicNotExist                      = 17
	ResponsePullNotFound                       = 19
	ResponsePullRetryImmediately               = 20
	ResponsePullOffsetMoved                    = 21
	ResponseQueryNotFound                      = 22
	ResponseSubscriptionParseFailed            = 23
	ResponseSubscriptionNotExist               = 24
	ResponseSubscriptionNotLatest              = 25
	ResponseSubscriptionGroupNotExist          = 26
	ResponseFilterDataNotExist                 = 27
	ResponseFilterDataNotLatest                = 28
	ResponseConsumerNotOnline                  = 206
	ResponseConsumeMsgTimeout                  = 207
	ResponseNoMessage                          = 208
	ResponseUpdateAndCreateACLConfigFailed     = 209
	ResponseDeleteACLConfigFailed              = 210
	ResponseUpdateGlobalWhiteAddrsConfigFailed = 211
	ResponseFlowControl                        = 215
	ResponseRelayAbandon                       = 9103 // our own, to a node that relays: close the client's connection
)

var responseNames = map[int]string{
	ResponseSuccess:                            "SUCCESS",
	ResponseSystemError:                        "SYSTEM_ERROR",
	ResponseSystemBusy:                         "SYSTEM_BUSY",
	ResponseRequestCodeNotSupported:            "REQUEST_CODE_NOT_SUPPORTED",
	ResponseFlushDiskTimeout:                   "FLUSH_DISK_TIMEOUT",
	ResponseSlaveNotAvailable:                  "SLAVE_NOT_AVAILABLE",
	ResponseFlushSlaveTimeout:                  "FLUSH_SLAVE_TIMEOUT",
	ResponseMessageIllegal:                     "MESSAGE_ILLEGAL",
	ResponseServiceNotAvailable:                "SERVICE_NOT_AVAILABLE",
	ResponseNoPermission:                       "NO_PERMISSION",
	ResponseTopicNotExist:                      "TOPIC_NOT_EXIST",
	ResponsePullNotFound:                       "PULL_NOT_FOUND",
	ResponsePullRetryImmediately:               "PULL_RETRY_IMMEDIATELY",
	ResponsePullOffsetMoved:                    "PULL_OFFSET_MOVED",
	ResponseQueryNotFound:                      "QUERY_NOT_FOUND",
	ResponseSubscriptionParseFailed:            "SUBSCRIPTION_PARSE_FAILED",
	ResponseSubscriptionNotExist:               "SUBSCRIPTION_NOT_EXIST",
	ResponseSubscriptionNotLatest:              "SUBSCRIPTION_NOT_LATEST",
	ResponseSubscriptionGroupNotExist:          "SUBSCRIPTION_GROUP_NOT_EXIST",
	ResponseFilterDataNotExist:                 "FILTER_DATA_NOT_EXIST",
	ResponseFilterDataNotLatest:                "FILTER_DATA_NOT_LATEST",
	ResponseConsumerNotOnline:                  "CONSUMER_NOT_ONLINE",
	ResponseConsumeMsgTimeout:                  "CONSUME_MSG_TIMEOUT",
	ResponseNoMessage:                          "NO_MESSAGE",
	ResponseUpdateAndCreateACLConfigFailed:     "UPDATE_AND_CREATE_ACL_CONFIG_FAILED",
	ResponseDeleteACLConfigFailed:              "DELETE_ACL_CONFIG_FAILED",
	ResponseUpdateGlobalWhiteAddrsConfigFailed: "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED",
	ResponseFlowControl:                        "FLOW_CONTROL",
	ResponseRelayAbandon:                       "RELAY_ABANDON",
}

// RequestName returns the original's name of a request code, its number if there is none.
func RequestName(code int) string { return nameOf(requestNames, code) }

// ResponseName returns the original's name of a response code, its number if there is none.
func ResponseName(code int) string { return nameOf(responseNames, code) }

func nameOf(names map[int]string, code int) string {
	if name, ok := names[code]; ok {
		return name
	}
	return strconv.Itoa(code)
}
