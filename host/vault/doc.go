// Package vault keeps the secrets of connections at rest: one age file per secret at
// DIR/vault/<connection>/<name>.age, and the identity that opens them in
// DIR/keys/vault.age-identity. Values are nowhere else: not in the store, not in a log, not in
// a temporary file.
//
// The room trusts the user that it runs as and nothing else about the disk. Every directory
// and file is looked at before it is used: one that others can reach, that somebody else owns,
// or that is a link, a pipe or anything but what belongs there is refused, never followed and
// never repaired in silence. What a file decrypts to is believed only if it says that it is
// the secret that was asked for.
//
// It does not protect against somebody who has both directories: an identity beside its vault
// opens it.
//
// Hosts that share a store have a Shared vault in it, for which each keeps its keys in a vault of
// its own. There the store is not trusted either; see Shared.
package vault
