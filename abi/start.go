package abi

import "encoding/json"

// Start is the START envelope: all that a guest learns about its run.
type Start struct {
	Type           string                     `json:"type,omitempty"` // "START" on stdio only
	RunID          string                     `json:"run_id"`
	ConnectionID   string                     `json:"connection_id"`
	ConnectorID    string                     `json:"connector_id"`
	CollectionMode string                     `json:"collection_mode"`
	Scope          Scope                      `json:"scope"`
	State          map[string]json.RawMessage `json:"state"` // null when there is none
	Bindings       Bindings                   `json:"bindings"`
	DetailGaps     []ServedGap                `json:"detail_gaps"`
	Config         json.RawMessage            `json:"config,omitempty"`
	Secrets        map[string]string          `json:"secrets,omitempty"`
	ABI            *Version                   `json:"abi,omitempty"`
}

// The collection modes.
const (
	FullRefresh = "full_refresh"
	Incremental = "incremental"
)

// A Version is the version of the contract, as START announces it.
type Version struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

// Bindings are the facilities offered to a run. A nil member is not offered.
type Bindings struct {
	Network     *NetworkBinding    `json:"network,omitempty"`
	Filesystem  *FilesystemBinding `json:"filesystem,omitempty"`
	Interactive *struct{}          `json:"interactive,omitempty"`
	Browser     *BrowserBinding    `json:"browser,omitempty"`
}

// NetworkBinding lists the approved host patterns; an empty list permits nothing.
type NetworkBinding struct {
	Hosts []string `json:"hosts"`
}

// FilesystemBinding lists the mounted directories.
type FilesystemBinding struct {
	Mounts []GuestMount `json:"mounts"`
}

// BrowserBinding names the default profile and the hosts of the connection's network
// policy.
type BrowserBinding struct {
	Profile string   `json:"profile"`
	Hosts   []string `json:"hosts"`
}

// A GuestMount is a directory as the guest sees it.
type GuestMount struct {
	Path string `json:"path"`
	Mode string `json:"mode"` // ro or rw
}

// A ServedGap is a pending detail gap that is offered for another attempt.
type ServedGap struct {
	GapID         string          `json:"gap_id"`
	Stream        string          `json:"stream"`
	ParentStream  string          `json:"parent_stream,omitempty"`
	RecordKey     string          `json:"record_key,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	DetailLocator json.RawMessage `json:"detail_locator,omitempty"`
	ListCursor    json.RawMessage `json:"list_cursor,omitempty"`
	AttemptCount  int             `json:"attempt_count"`
}

// A Response is an INTERACTION_RESPONSE, the host's only message besides START.
type Response struct {
	Type         string                     `json:"type,omitempty"` // "INTERACTION_RESPONSE" on stdio only
	RequestID    string                     `json:"request_id"`
	Status       string                     `json:"status"` // success, cancelled, timeout
	Data         map[string]json.RawMessage `json:"data,omitempty"`
	SealedFields []string                   `json:"sealed_fields,omitempty"`
}

// The statuses of a Response.
const (
	AnswerSuccess   = "success"
	AnswerCancelled = "cancelled"
	AnswerTimeout   = "timeout"
)
