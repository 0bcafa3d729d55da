package admin

import "github.com/actormq/actormq/system/admin/history"

// lags tells how far groups are behind, in each topic in which they have committed an offset.
func (c *collector) lags() {
	all := history.Lags(c.cfg.Node.Broker())
	for _, l := range all[:min(len(all), maxLags)] {
		c.count(groupLag, l.Messages, l.Group, l.Topic)
	}
	c.count(groupLeftOut, int64(max(len(all)-maxLags, 0)))
}
