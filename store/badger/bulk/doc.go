// Package bulk holds what is written once and never changed: the segments with the
// records, the pages of index runs and their filters. They lie in files beside the
// engine, in extents
//
//	magic u32  key_len u16  length u32  key  payload          little-endian
//
// and the engine keeps, under the key, where an extent is and both of its
// checksums. An extent is synced before the transaction that refers to it, so it is
// there whenever the transaction is; one that no transaction refers to is garbage
// and is written over.
//
// The reason is write amplification: the engine copies every byte four to five
// times on its way down its levels, through mapped files, and that was three
// quarters of the cost of a record. The engine's own value log would do, but for a
// failed sync that it only logs.
//
// The package knows files and forms. Which extents exist, and which are current, is
// in the engine: package badger.
package bulk
