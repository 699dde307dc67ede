// Package filesystem serves a guest's file operations in the directories that an owner
// approved. It is the security boundary for files.
//
// It trusts nothing in a call: no mount, handle, path or length. It trusts the kernel and
// os.Root, through which every path is resolved; no guest path is ever joined to a host
// path. It assumes that other programs change the directories concurrently, so what was
// checked by name is checked again on the open file.
//
// A refusal consists of two numbers without text, so that no error contains a host path.
package filesystem
