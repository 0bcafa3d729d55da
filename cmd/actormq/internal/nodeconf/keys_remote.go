package nodeconf

// Remote is where actors of other processes reach the store, and how they prove who they are.
type Remote struct {
	Listen    string // remoteListen: host:port, empty: nowhere
	Advertise string // remoteAdvertise
	Cert      string // remoteCertPath
	Key       string // remoteKeyPath
	Trust     string // remoteTrustCertPath
}

// remoteKeys are the keys of actor remoting.
var remoteKeys = []keyDef{
	{"remoteListen", "", "host:port where actors of other processes reach the store, empty for none; elsewhere than on loopback with the three keys below",
		address(func(c *Config) *string { return &c.Remote.Listen })},
	{"remoteAdvertise", "", "host:port by which they reach it, where that is not remoteListen (NAT, containers)",
		address(func(c *Config) *string { return &c.Remote.Advertise })},
	{"remoteCertPath", "", "certificate chain of the node for them, in both directions, PEM", text(func(c *Config) *string { return &c.Remote.Cert })},
	{"remoteKeyPath", "", "its key, PEM, not encrypted", text(func(c *Config) *string { return &c.Remote.Key })},
	{"remoteTrustCertPath", "", "who signs their certificates, PEM", text(func(c *Config) *string { return &c.Remote.Trust })},
}
