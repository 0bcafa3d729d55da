package actors

// Role is the name of an actor's part in a store; its PID is store/<role>.
type Role string

// Roles of the storage actors.
const (
	RoleWriter       Role = "commitlog-writer"
	RoleAllocator    Role = "segment-allocator"
	RoleCommitter    Role = "committer"
	RoleFlusher      Role = "group-commit-flusher"
	RoleDispatcher   Role = "reput-dispatcher"
	RoleQueueBuilder Role = "reput-dispatcher/queue-builder"
	RoleIndexer      Role = "index-builder"
	RolePullHold     Role = "pull-hold"
	RoleCleaner      Role = "cleaner"
	RoleScheduler    Role = "delay-scheduler"
	RoleReplicator   Role = "ha-replicator"
	RoleFollower     Role = "ha-follower"
)
