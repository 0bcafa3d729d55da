package nodeconf

import "math"

// lightKeys are the keys of messages that are in several queues.
var lightKeys = []keyDef{
	{"enableMultiDispatch", "false", "a message is in the queues too that its property INNER_MULTI_DISPATCH names",
		boolean(func(c *Config) *bool { return &c.Store.MultiDispatch })},
	{"enableLmq", "false", "serve light topics (%LMQ%…), and keep consumer offsets in lmqConsumerOffset.json", lightTopics},
	{"maxLmqConsumeQueueNum", "20000", "queues of light topics that there may be",
		integer(func(c *Config) *int { return &c.Store.MaxLightQueues }, 1, math.MaxInt32)},
}

func lightTopics(c *Config, value string) error {
	if err := boolean(func(c *Config) *bool { return &c.Store.LightTopics })(c, value); err != nil {
		return err
	}
	c.Gateway.Broker.Policy.LightTopics = c.Store.LightTopics
	return nil
}
