package network

import (
	"time"

	"github.com/sluicehost/sluice/abi"
)

// Limits bound what requests cost.
type Limits struct {
	RequestHeaders      int   // how many
	RequestHeaderBytes  int   // all of them
	RequestBody         int64 // bytes
	ResponseHeaderBytes int64
	Response            int64 // decoded bytes of a body, unless the guest asks for less or more
	ResponseMost        int64 // what it may ask for
	Ratio               int64 // decoded to received bytes, after ratioFrom

	Dial, TLS, Headers, Total, TotalMost time.Duration
	FloorWindow                          time.Duration // in which at least 1 KiB for each second comes
	Redirects                            int
	Informational                        int // answers 1xx of one request
	Connections                          int // open at once, of one run
	RunRequests                          int64
	RunBytes                             int64 // received, all requests of a run
}

// DefaultLimits returns the defaults.
func DefaultLimits() Limits {
	return Limits{
		RequestHeaders: 64, RequestHeaderBytes: 32 * abi.KiB, RequestBody: 16 * abi.MiB,
		ResponseHeaderBytes: 64 * abi.KiB, Response: 32 * abi.MiB, ResponseMost: 1 << 30, Ratio: 100,
		Dial: 10 * time.Second, TLS: 10 * time.Second, Headers: 30 * time.Second, Total: 2 * time.Minute, TotalMost: time.Hour,
		FloorWindow: 30 * time.Second,
		Redirects:   5, Informational: 3, Connections: abi.MaxHandles, RunRequests: 10_000, RunBytes: 2 << 30,
	}
}

// What no configuration changes.
const (
	maxURL       = 8 * abi.KiB
	maxAddresses = 16
	ratioFrom    = 1 * abi.MiB
	floorRate    = 1 * abi.KiB // per second
)
