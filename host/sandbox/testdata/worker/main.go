// Command worker is the host's executable as far as workers are concerned. Tests
// start it instead of themselves, because it is built as releases are: without
// cgo, and never under the race detector.
package main

import (
	"fmt"
	"os"

	"github.com/sluicehost/sluice/host/worker"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(worker.Main(os.Args[2:]))
	}
	fmt.Println(worker.BuildID())
	fmt.Println(worker.EngineVersion())
}
