// Package tracing sends OpenTelemetry traces of sampled messages to a collector, by OTLP over HTTP: how long the put of a message took,
// when it was durable, when it was in its queue, and which groups have pulled it.
//
//	put ──┬── flush      until it is durable
//	      ├── dispatch   until readers find it
//	      └── pull       one each time that a consumer is given it
//
// Which messages are sampled follows from their place in the log, so a pull knows it without asking anybody, also after a restart and at
// a slave. The ids of a trace follow from the place too, unless the message has a property traceparent (W3C Trace Context): then its spans
// are part of that trace, and one that is not sampled there is not sampled here.
//
// What is not sampled costs a multiplication at the put, and one for each message of a pull, and allocates nothing; what is sampled goes
// through a channel that nobody waits for to a service of the store, which reads the message again and makes the spans. When it can't keep
// up, spans are left out. While there is tracing a dispatcher reads the log once more, as whoever sees what is durable does.
//
// A flush or a dispatch that was over before the put was answered ends with the answer, as far as is known. Half messages and delayed ones
// are two messages each, which share a trace if they have a traceparent.
package tracing
