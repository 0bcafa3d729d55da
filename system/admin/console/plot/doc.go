// Package plot draws series of numbers over time as SVG, so that the pages of the console need no library and work without scripts.
package plot
