// Package network is the network binding: what a manifest asks for and an owner approves (Kind), and the calls by
// which a guest makes requests and reads their answers (Session). What may be reached, and how, is for package
// egress to decide; this package has the handles and the bounds of one guest.
package network
