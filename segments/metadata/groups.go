package metadata

// SubscriptionGroupConfig is the configuration of one consumer group (spec/store.md §13.2).
type SubscriptionGroupConfig struct {
	BrokerID                       int64   `json:"brokerId"` // that the group reads from
	ConsumeBroadcastEnable         bool    `json:"consumeBroadcastEnable"`
	ConsumeEnable                  bool    `json:"consumeEnable"`
	ConsumeFromMinEnable           bool    `json:"consumeFromMinEnable"`
	GroupName                      string  `json:"groupName"`
	NotifyConsumerIDsChangedEnable bool    `json:"notifyConsumerIdsChangedEnable"`
	RetryMaxTimes                  int     `json:"retryMaxTimes"`
	RetryQueueNums                 int     `json:"retryQueueNums"`
	WhichBrokerWhenConsumeSlowly   int64   `json:"whichBrokerWhenConsumeSlowly"` // id of the broker to read from instead
	Unknown                        Unknown `json:"-"`
}

// GroupTable is the content of subscriptionGroup.json.
type GroupTable struct {
	DataVersion DataVersion                        `json:"dataVersion"`
	Groups      map[string]SubscriptionGroupConfig `json:"subscriptionGroupTable"`
	Unknown     Unknown                            `json:"-"`
}

type (
	plainGroupConfig SubscriptionGroupConfig
	plainGroupTable  GroupTable
)

// MarshalJSON writes the known members and the kept ones.
func (c SubscriptionGroupConfig) MarshalJSON() ([]byte, error) {
	return encodeKeeping(plainGroupConfig(c), c.Unknown)
}

// UnmarshalJSON reads the known members and keeps the others.
func (c *SubscriptionGroupConfig) UnmarshalJSON(data []byte) error {
	return decodeKeeping(data, (*plainGroupConfig)(c), &c.Unknown)
}

// MarshalJSON writes the known members and the kept ones.
func (t GroupTable) MarshalJSON() ([]byte, error) {
	if t.Groups == nil {
		t.Groups = map[string]SubscriptionGroupConfig{}
	}
	return encodeKeeping(plainGroupTable(t), t.Unknown)
}

// UnmarshalJSON reads the known members and keeps the others.
func (t *GroupTable) UnmarshalJSON(data []byte) error {
	return decodeKeeping(data, (*plainGroupTable)(t), &t.Unknown)
}
