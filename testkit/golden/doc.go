// Package golden holds store directories that were written by RocketMQ 4.9.7, most of them damaged on purpose, and what is
// to be read from each: for those that RocketMQ reads rightly its own answer, for the others what was put and must still be
// there. It is for tests only and panics when its own data is damaged.
//
//	for _, name := range golden.Names() {
//		s := golden.Load(name)
//		dir, err := s.Unpack(t.TempDir())   // the directory
//		s.Params                            // params.json: its file sizes
//		s.Check(dump)                       // dump: the JSON of `actormq store dump`; returns what is wrong
//	}
//
// testdata/<name>/ has
//
//	store.tar.gz       the directory, as it lay on the disk, damage applied
//	params.json        sizes and switches
//	expected.json.gz   what RocketMQ reads after its own recovery; only where that is right
//	manifest.json.gz   what was put and how it was answered, and
//	verify.json        which of it is really damaged; only where RocketMQ loses something that is whole
package golden
