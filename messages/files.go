package messages

// FilesChanged tells that a file which is watched has another content, has come or has gone. The receiver reads the files.
//
// Sender: a file watcher. Receiver: the keeper of what is in the files. No answer. Bound: one an interval.
type FilesChanged struct{}
