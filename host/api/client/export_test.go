package client

import "time"

// SetWait sets the time between attempts to follow on.
func (c *Client) SetWait(d time.Duration) { c.wait = d }

// MaxFrame is the bound of a frame.
const MaxFrame = maxFrame

// Hasty is a client that hardly waits for a host to say that it is there.
func Hasty(c *Client) *Client {
	c.hello = 20 * time.Millisecond
	return c
}
