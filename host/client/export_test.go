package client

import "time"

// SetWait sets the time between attempts to follow on.
func (c *Client) SetWait(d time.Duration) { c.wait = d }

// MaxFrame is the bound of a frame.
const MaxFrame = maxFrame
