// Package filesystem is the host's side of a guest's files. It owns which
// directories an owner approved, and every file operation a guest makes in
// them: this package is the security boundary for files.
//
// It trusts nothing that arrives in a call: not the mount, not the handle, not
// the path, not a length. It trusts the kernel and os.Root, through which
// every path is resolved; no path of a guest is ever joined to a host path.
// It also assumes that other programs change the directories while a run
// looks at them, so what was checked by name is checked again on the open
// file.
//
// A refusal is a pair of numbers. No text crosses, so that no error names a
// path of the host.
package filesystem
