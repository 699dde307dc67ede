// Package signature signs modules and verifies who signed them, in the format
// of minisign: Ed25519 over the BLAKE2b-512 of the file. The minisign
// tool reads what is written here, and the other way round.
//
// It decides one thing: were exactly these bytes signed with exactly this key?
// Whose key it is, and whether to trust it, is the caller's business. Every text
// it parses is hostile: bounded, and accepted in one spelling only.
package signature
