// Package filewatch looks at an operator's files and tells when their content has changed: what access rules and certificates
// are reloaded by. As RocketMQ does, it reads the files at an interval and compares their checksums: that works on every
// file system, with links that are switched, and with files that are replaced as well as with those that are changed in place.
//
// Who is told reads the files itself; it may find them newer still, and is then told once more for nothing.
package filewatch
