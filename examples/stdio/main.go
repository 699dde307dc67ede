// Command stdio is a connector that knows nothing of Sluice: an ordinary Go
// program that speaks the PDPP Collection Profile, one JSON object a line, on
// stdin and stdout. It collects the rows of a CSV table that its settings
// hold. Any language that can read and write lines can do the same.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Stdin, os.Stdout, os.Stderr))
}

// run is one run: the exit code agrees with the status of DONE.
func run(in io.Reader, out, diagnostics io.Writer) int {
	p := &profile{in: bufio.NewReaderSize(in, 64<<10), out: bufio.NewWriterSize(out, 64<<10)}
	start, err := p.start()
	if err != nil {
		fmt.Fprintln(diagnostics, "no START:", err)
		return 1
	}
	err = collect(p, start)
	if err != nil {
		fmt.Fprintln(diagnostics, "collect:", err)
	}
	if doneErr := p.done(err); err != nil || doneErr != nil {
		return 1
	}
	// End of input says that the host has taken DONE.
	if _, err := io.Copy(io.Discard, p.in); err != nil && !errors.Is(err, os.ErrClosed) {
		return 1
	}
	return 0
}
