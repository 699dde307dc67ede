// Command sluice runs connectors that nobody has to trust.
package main

import (
	"os"

	"github.com/sluicehost/sluice/host/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
