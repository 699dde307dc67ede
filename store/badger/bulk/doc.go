// Package bulk stores immutable data: segments with records, pages of index runs and their
// filters. They are extents in files beside the engine
//
//	magic u32  key_len u16  length u32  key  payload          little-endian
//
// and the engine maps each key to the place of its extent and two checksums. An extent is
// synced before the transaction that refers to it, so it exists whenever the transaction
// does. An extent without a reference is garbage and may be overwritten.
//
// The reason is write amplification: the engine would copy every byte four to five times
// through its levels, in mapped files, which was three quarters of the cost of a record.
// The engine's own value log is no alternative because it only logs a failed sync.
//
// The package knows files and formats. Package badger keeps in the engine which extents
// exist and which are current.
package bulk
