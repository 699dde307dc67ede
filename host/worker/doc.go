// Package worker is the program inside the jail: one process, one wasm engine,
// one guest instance, and a socket to the host.
//
// It owns wazero. It holds no policy and nothing worth having: whatever a guest
// asks for crosses the socket as a call, and the answer is the host's. What
// it decides by itself is only what needs guest memory to decide: whether a
// pointer lies inside of it and whether a request is over its limit.
//
// It trusts the host's messages, and nothing of the module. Once the guest has
// run its first instruction nobody trusts this process any more.
package worker
