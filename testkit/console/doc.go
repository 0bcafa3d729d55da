// Command console looks at every page of a node's console in Chromium: at the width of a desk and of a phone, in light and in
// dark. It fails when a page logs an error, throws, loads something that is not there, is wider than its window, or cannot be
// reached by keyboard; and when the numbers do not change by themselves. It leaves a picture of each page. It is a module of its
// own, so that nobody else needs its libraries; run.sh starts a node with something to see and runs it.
package main
