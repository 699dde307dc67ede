package badger

// RefuseFS is the test of a file system by its magic number.
var RefuseFS = refuseFS
