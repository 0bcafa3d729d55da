// Package fastjson reads and writes the JSON dialect of RocketMQ's peers (spec/remoting.md §2) with the standard
// library only. No I/O, no state; every function is safe for concurrent use.
//
//	in                                      [Relax] out
//	{0:"a",1:"b"}                           {"0":"a","1":"b"}
//	{{"queueId":0,"topic":"T"}:5}           {"{\"queueId\":0,\"topic\":\"T\"}":5}
//	{name:'it"s'}                           {"name":"it\"s"}
//	{"strict":[1,2]}                        the same slice, not copied
//
// [Relax] turns the dialect into strict JSON. [Unmarshal] reads the dialect into Go values and takes numbers that are
// given as strings and the reverse. [Marshal] writes compact strict JSON, which every listed peer reads.
//
// Input is never trusted: size, nesting and the number of elements are limited, an error names the byte offset.
package fastjson
