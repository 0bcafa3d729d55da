// Package scrub reads a store's messages again and again in the background, slowly, and compares each with its checksum: damage that
// a disk does to old data is known before somebody needs it, and while a replica or a backup still has it.
//
// It is a service of the store (system.Service) and goes queue by queue, reading as a consumer does; what it finds is in its Status, in
// the log, and told to OnDamage. It repairs nothing: `actormq store verify` says more about a damaged place, `store repair` mends what
// can be mended.
package scrub
