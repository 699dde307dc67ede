// Package backup copies a data directory into one file and restores it from there.
//
// An archive is a tar file that standard tools can read, either by itself or inside an age file:
//
//	manifest.json             versions, counters of every stream, every part's size and SHA-256
//	modules/DIGEST.wasm       installed modules
//	store.image               the store, as of one commit; or store.items, where its driver has no form of its own
//	vault/CONNECTION/NAME.age secrets, sealed as they lie on the disk
//	SHA256SUMS                of all of the above; sha256sum -c understands it
//
// It never contains keys/vault.age-identity, which opens the secrets.
//
// A backup only counts after its drill: the file that was written is read again, decrypted, and unpacked into an empty
// directory by a separate process. The result is recounted and copied again, and the copies must be identical. A
// restore is the same process and a rename.
//
// # Trust
//
// The package trusts its callers, but nothing in an archive. Every byte is accounted for: the manifest says what
// follows, tar headers and padding are computed and compared, parts must match their digests, and the list at the end
// covers the manifest. The content of a store is checked as the store checks its own disk. Encryption proves nothing
// about the author, because whoever knows the recipient can make a backup for it. So an owner must only restore files
// of their own.
package backup
