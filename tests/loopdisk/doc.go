// Package loopdisk is a file system whose power can be cut: ext4 in a file, on a
// loop device. What the device had at the moment of the cut is what the next
// mount finds; what lay in memory only is gone. A device that lies about what it
// has written is not modelled.
package loopdisk
