// Package worker is the program inside the jail: one process, one wasm engine, one guest
// instance, and a socket to the host.
//
// It owns wazero. It holds no policy and no secrets: requests of the guest cross the socket
// as calls, and the host answers them. It decides only what requires guest memory: whether
// a pointer is inside of it, and whether a request is within its limit.
//
// It trusts the host's messages but nothing in the module. After the guest's first
// instruction nobody trusts this process.
package worker
