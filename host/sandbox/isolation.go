package sandbox

import "github.com/sluicehost/sluice/host/jail"

// Isolation is what holds around a guest (S20), for rooms that see the jail
// through the sandbox only.
type Isolation = jail.Isolation
