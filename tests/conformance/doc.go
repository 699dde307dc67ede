// Package conformance shows the run protocol in transcripts: files in
// testdata that say what a connector does and what comes of it. Each is played
// by a connector that knows nothing of Sluice but the contract, on both
// transports and under both engines of the worker, and must end the same way.
// The invariants beside the transcripts hold for every run, whatever its
// script; random walks compare the protocol with a model of its own.
//
// The form of a transcript:
//
//	# A comment, for the reader.
//	case NAME
//	stream NAME key=FIELD …    the manifest in short; without it, one stream items
//	manifest JSON              members that replace those of the manifest
//	connection JSON            members of the connection: grant, leak_canary, …
//	store QUERY                a query of the memory: store, such as fail_state=items
//	limit NAME=N, budget NAME=DURATION
//	on abi | stdio             one transport only
//	show TYPE MEMBER …         more members of an event
//	brief                      no more of the outcome than the violation
//	run                        one run; several share their store
//	with OPTION …              its options: scope, state, mode, config, secret, answer, …
//	STEP                       what the connector does, see below
//	----
//	the outcome, up to an empty line
//
// A step is one of the player's (tests/conformance/player), or a message:
//
//	RECORD STREAM KEY DATA     in short, DELETE STREAM KEY as well
//	STATE STREAM CURSOR
//	DONE STATUS COUNT [ERROR]
//	TYPE {…}                   any message in full, without its type
//	line TEXT                  bytes to standard output and a line feed, \x.. escapes allowed
//	bytes TEXT                 the same without a line feed
//	request FN TEXT            bytes as the argument of a function
//	frame HEX…                 a record frame; 'texts' in quotes
//	long N STEP, deep N STEP   the step with N letters, or arrays, for each …
//	repeat N STEP              the step N times; %d is the number
//
// An outcome is one line with status, reason, subtype and the exit code of the
// command line; then what differs from an empty success. The timeline has one
// commit per line.
//
// The first line of an outcome is written by hand. go test -update completes the
// rest and refuses to change that line; what the rest must be is in docs/spec, not
// in what the code does: read what changed.
package conformance
