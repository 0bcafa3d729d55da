// Package bench tests the scripts that measure this store and others; README.md tells of them.
package bench
