package cli

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// A reader of standard output that is gone is no failure of a command; one of
// anything else is.
func TestUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	_, err = w.WriteString("a record\n")
	var write *fs.PathError
	if !errors.As(err, &write) {
		t.Fatalf("a closed pipe: %v", err)
	}
	write.Path = os.Stdout.Name()
	if !isClosedOutput(err) {
		t.Errorf("a closed standard output: %v", err)
	}
	for _, other := range []error{
		&fs.PathError{Op: "write", Path: "/tmp/out.jsonl", Err: syscall.EPIPE},
		&fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.ENOSPC},
		errors.New("broken pipe"), nil,
	} {
		if isClosedOutput(other) {
			t.Errorf("%v is no closed standard output", other)
		}
	}
}
