package egress

import (
	"time"

	"github.com/sluicehost/sluice/abi"
)

// Limits bound the cost of requests.
type Limits struct {
	RequestHeaders      int   // number of headers
	RequestHeaderBytes  int   // total length
	RequestBody         int64 // bytes
	ResponseHeaderBytes int64
	Response            int64 // default limit of a decoded body
	ResponseMost        int64 // highest limit that a guest may request
	Ratio               int64 // decoded to received bytes, enforced after ratioFrom

	Dial, TLS, Headers, Total, TotalMost time.Duration
	FloorWindow                          time.Duration // in which the average must be at least 1 KiB/s
	Redirects                            int
	Informational                        int // informational (1xx) answers to one request
	Connections                          int // open connections of one run
	RunRequests                          int64
	RunBytes                             int64 // received in all requests of a run
}

// DefaultLimits returns the defaults.
func DefaultLimits() Limits {
	return Limits{
		RequestHeaders: 64, RequestHeaderBytes: 32 * abi.KiB, RequestBody: 16 * abi.MiB,
		ResponseHeaderBytes: 64 * abi.KiB, Response: 32 * abi.MiB, ResponseMost: 1 << 30, Ratio: 100,
		Dial: 10 * time.Second, TLS: 10 * time.Second, Headers: 30 * time.Second, Total: 2 * time.Minute,
		TotalMost: time.Hour, FloorWindow: 30 * time.Second,
		Redirects: 5, Informational: 3, Connections: abi.MaxHandles, RunRequests: 10_000, RunBytes: 2 << 30,
	}
}

// Limits that no configuration changes.
const (
	maxURL       = 8 * abi.KiB
	maxAddresses = 16
	ratioFrom    = 1 * abi.MiB
	floorRate    = 1 * abi.KiB // per second
)
