// Package backup copies a data directory into one file and back.
//
// An archive is a tar that standard tools read, alone or inside an age file:
//
//	manifest.json             versions, counters of every stream, every part's size and SHA-256
//	modules/DIGEST.wasm       installed modules
//	store.image               the store, as of one commit; or store.items, where its driver has no form of its own
//	vault/CONNECTION/NAME.age secrets, sealed as they lie on the disk
//	SHA256SUMS                of all of the above; sha256sum -c understands it
//
// What opens the secrets, keys/vault.age-identity, is never in it.
//
// A backup counts after its drill: the very file that was written is read
// again, decrypted, unpacked into an empty directory by a process of its own,
// and what came out is recounted and copied once more; the copies must be the
// same, byte for byte. A restore is the same process and a rename.
//
// # Trust
//
// The package trusts its callers and nothing in an archive. Every byte of one
// is accounted for: the manifest says what follows, tar headers and paddings
// are computed and compared, parts match their digests, and the list at the end
// covers the manifest. What a store in an archive says is checked as the store
// checks its own disk. Encryption proves nothing about the author: whoever
// knows the recipient can make a backup for it, so an owner restores files of
// theirs only.
package backup
