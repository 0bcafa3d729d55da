package messages

// BrokerRole is the part that a store plays in replication (brokerRole).
type BrokerRole int

// The three roles.
const (
	AsyncMaster BrokerRole = iota // takes puts, and does not wait for replicas
	SyncMaster                    // takes puts, and answers those that wait when a replica has them
	Slave                         // takes no puts: what it stores comes from its master
)

var roleNames = [...]string{"ASYNC_MASTER", "SYNC_MASTER", "SLAVE"}

func (r BrokerRole) String() string { return name(roleNames[:], int(r)) }

// ParseBrokerRole reads a role as RocketMQ writes it.
func ParseBrokerRole(text string) (BrokerRole, bool) {
	for i, n := range roleNames {
		if n == text {
			return BrokerRole(i), true
		}
	}
	return 0, false
}
