// Package dispatching is the contract suite for extensions with dispatchers or services: whatever happens, nothing that was acknowledged
// is missing from what the extension shows. It runs the extension on the simulated disk, in virtual time, and
//
//   - stops the process, and cuts the power, at every step that changes the disk, and opens what is left;
//   - stops in good order, and goes on with a new instance;
//   - hands every batch twice;
//   - lets calls panic and fail now and then;
//   - ends services in the middle, and lets those that are actors panic;
//   - makes every write of the disk slow.
//
// The extensions that are shipped in system/ext pass it.
package dispatching
