package app

import (
	"os"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/worker"
)

// Worker runs this process as a worker, or as the process that unpacks a backup, if args say so, and reports
// whether they did. A program that opens a Host must call it before anything else.
func Worker(args []string) (code int, isWorker bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case "worker":
		return worker.Main(args[1:]), true
	case backup.Command:
		restrictUmask()
		return backup.Main(args[1:], os.Stdin, os.Stdout, unpackOpener), true
	}
	return 0, false
}
