package guest

import (
	"context"
	"os"
)

// Main does the run for which the host started this module, and ends the
// program.
func Main(c Connector) { os.Exit(drive(context.Background(), c, port{})) }
