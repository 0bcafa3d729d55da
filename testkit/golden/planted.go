package golden

// Damage is what is damaged in the store, as a finding of `actormq store verify` says it; empty: the store is whole.
func (s Store) Damage() string {
	damage, known := planted[s.Name]
	if !known {
		panic("BUG: golden: nobody says whether " + s.Name + " is whole")
	}
	return damage
}

// Completes tells whether the next start makes good all that Damage says: the process had died, and the log is not concerned.
func (s Store) Completes() bool { return completed[s.Name] }

var completed = map[string]bool{
	"cq-tail-zeroed-crash": true, "missing-checkpoint": true, "missing-index-crash": true, "missing-one-queue-crash": true, "truncated-consumequeue-crash": true,
}

// planted is what is damaged in each golden store, as Damage says it. A store whose process died
// is whole when nothing is missing in it; so are crash-stale-resurrect, where records that were once dropped came back and follow
// soundly, crash-index-loss, where only RocketMQ's recovery would lose keys, and oversize-record, where the put came to nothing.
var planted = map[string]string{
	"ahead-checkpoint":                "consumequeue/CrashA/0/00000000000000000000 at 840: 120 records have no unit",
	"basic":                           "",
	"batch":                           "",
	"commitlog-tail-lost":             "consumequeue/CrashA/1/00000000000000000000 at 820: a unit names no record: queue offset 41, 8 units",
	"commitlog-tail-lost-crash":       "consumequeue/CrashB/0/00000000000000000000 at 680: a unit names no record: queue offset 34, 5 units",
	"compressed":                      "",
	"config-json":                     "",
	"cq-dirty":                        "consumequeue/CrashB/1/00000000000000000000 at 800: a unit names no record: queue offset 40, 3 units",
	"cq-ext":                          "",
	"cq-tail-zeroed":                  "consumequeue/CrashA/0/00000000000000000000 at 720: 7 records have no unit",
	"cq-tail-zeroed-crash":            "consumequeue/CrashA/0/00000000000000000000 at 540: 7 records have no unit",
	"crash-clean-tail":                "",
	"crash-garbage-magic-tail":        "commitlog/00000000000000000000 at 26137: record: bad lengths",
	"crash-garbage-tail":              "commitlog/00000000000000000000 at 25710: record: bad magic",
	"crash-huge-size-tail":            "commitlog/00000000000000000000 at 25843: record: record is cut off at byte 0: size 2147483647",
	"crash-index-loss":                "",
	"crash-negative-size-tail":        "commitlog/00000000000000000000 at 26324: record: bad record size at byte 0: -5",
	"crash-short-file":                "commitlog/00000000000000131072 at 0: 00000000000000131072 has 0 bytes",
	"crash-stale-resurrect":           "",
	"crash-sync-flush":                "",
	"crash-torn-blank":                "commitlog/00000000000000000000 at 32671: record: unallocated space",
	"crash-torn-header":               "commitlog/00000000000000000000 at 26325: something stands behind the end of the log, which is at 26262",
	"crash-torn-middle":               "commitlog/00000000000000000000 at 23599: record: bad lengths",
	"crash-torn-tail":                 "commitlog/00000000000000000000 at 26221: record: bad lengths",
	"crc-corrupt-crash":               "commitlog/00000000000000032768 at 2752: record: bad body CRC",
	"crc-corrupt-middle":              "commitlog/00000000000000131072 at 10312: record: bad body CRC",
	"crc-corrupt-old-file":            "commitlog/00000000000000000000 at 10693: record: bad body CRC",
	"delay":                           "",
	"empty":                           "",
	"empty-crash":                     "",
	"file-roll":                       "",
	"file-roll-exact":                 "",
	"ipv6":                            "",
	"length-field-corrupt":            "commitlog/00000000000000032768 at 924: record: bad lengths",
	"lmq":                             "",
	"min-offset":                      "",
	"min-offset-crash":                "",
	"min-offset-missing-consumequeue": "consumequeue/Old/0 at 0: 51 records have no unit",
	"missing-checkpoint":              "checkpoint at 0: is missing",
	"missing-consumequeue":            "consumequeue/CrashA/0 at 0: 54 records have no unit",
	"missing-index":                   "index at 0: 160 records lack an entry",
	"missing-index-crash":             "index at 0: 160 records lack an entry",
	"missing-middle-commitlog":        "commitlog at 32768: offset 32768 to 65536: segment is missing",
	"missing-one-queue":               "consumequeue/CrashA/1 at 0: 66 records have no unit",
	"missing-one-queue-crash":         "consumequeue/CrashA/1 at 0: 46 records have no unit",
	"oversize-record":                 "",
	"restart":                         "",
	"size-field-corrupt":              "commitlog/00000000000000032768 at 1396: record: bad lengths",
	"stale-checkpoint":                "checkpoint at 0: its time 1000000000000 is earlier",
	"truncated-consumequeue":          "consumequeue/CrashA/0/00000000000000000000 at 12345: 12345 bytes instead of 20000",
	"truncated-consumequeue-crash":    "consumequeue/CrashA/0/00000000000000000000 at 12345: 12345 bytes instead of 20000",
	"truncated-index":                 "index/20261129153348845 at 0: 1000 bytes instead of 42040",
	"tx-broker":                       "",
	"tx-store":                        "",
}
