package host

import "github.com/sluicehost/sluice/host/worker"

// Worker runs this process as a worker when args say so, and reports whether
// they did. A program that opens a Host calls it before anything else.
func Worker(args []string) (code int, isWorker bool) {
	if len(args) == 0 || args[0] != "worker" {
		return 0, false
	}
	return worker.Main(args[1:]), true
}
