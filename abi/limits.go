package abi

import "fmt"

const (
	KiB = 1 << 10
	MiB = 1 << 20
)

// Limits are the bounds on what a guest sends. Sizes are in
// bytes, counts per run unless said otherwise. The operator may change them
// within the bounds of Check; a manifest never raises one.
type Limits struct {
	FrameBytes     int // binary frame, stdio line or any other message
	FrameRecords   int // records of one frame
	RecordBytes    int // encoded data of one record
	CursorBytes    int
	TextBytes      int // message texts, before the timeline cuts them
	SchemaBytes    int
	OpaqueBytes    int // diagnostics, detail_locator, list_cursor, last_error
	Attachments    int // per request
	LiveExtraBytes int // url and payload of an attachment
	StartBytes     int

	AssistanceOpen     int // at once
	AssistancePerRun   int
	InteractionsPerRun int
	StatePerRun        int
	SkipPerRun         int
	GapPerRun          int
	CoveragePerRun     int
	RecordsPerRun      int64 // 0 is unlimited
	CoverageKeys       int   // per list

	FlushRecords      int
	FlushBytes        int
	ProgressPerSecond int
	ProgressBurst     int
	LogBytesPerSecond int
}

// Fixed bounds: no configuration changes them.
const (
	MaxKeyBytes       = 1024 // canonical key
	MaxKeyParts       = 16
	MaxStreamName     = 128
	MaxIDBytes        = 200
	MaxReasonBytes    = 200
	MaxSchemaFields   = 32
	MaxSchemaDepth    = 8
	MaxScopeStreams   = 256
	MaxScopeResources = 10_000
	MaxScopeFields    = 512
	MaxResponseBytes  = 64 * KiB
	MaxResponseFields = 32
	MaxResponseValue  = 8 * KiB
	MaxRecordValues   = 10_000 // JSON values in one record
	MaxManifestBytes  = 256 * KiB
	MaxErrorText      = 4 * KiB // of the text that explains an errno
	MaxHandles        = 64      // of a guest at once
	LogTailBytes      = 16 * KiB
)

// DefaultLimits returns the limits of a host that was not told otherwise.
func DefaultLimits() Limits {
	return Limits{
		FrameBytes: MiB + 64*KiB, FrameRecords: 65_535, RecordBytes: MiB, CursorBytes: 256 * KiB,
		TextBytes: 8 * KiB, SchemaBytes: 16 * KiB, OpaqueBytes: 64 * KiB,
		Attachments: 8, LiveExtraBytes: 2048, StartBytes: 16 * MiB,
		AssistanceOpen: 16, AssistancePerRun: 500, InteractionsPerRun: 100,
		StatePerRun: 100_000, SkipPerRun: 2_000, GapPerRun: 50_000, CoveragePerRun: 1_024,
		CoverageKeys: 20_000,
		FlushRecords: 500, FlushBytes: MiB, ProgressPerSecond: 5, ProgressBurst: 20,
		LogBytesPerSecond: MiB,
	}
}

// Check refuses limits above their bounds or below what a run
// needs, naming the key.
func (l Limits) Check() error {
	d := DefaultLimits()
	for _, b := range []struct {
		key        string
		value, max int
	}{
		{"frame_bytes", l.FrameBytes, 2*MiB + 64*KiB},
		{"frame_records", l.FrameRecords, 65_535},
		{"record_bytes", l.RecordBytes, 2 * MiB},
		{"cursor_bytes", l.CursorBytes, MiB},
		{"text_bytes", l.TextBytes, 32 * KiB},
		{"schema_bytes", l.SchemaBytes, 64 * KiB},
		{"opaque_bytes", l.OpaqueBytes, 256 * KiB},
		{"attachments", l.Attachments, 10 * d.Attachments},
		{"live_extra_bytes", l.LiveExtraBytes, 10 * d.LiveExtraBytes},
		{"start_bytes", l.StartBytes, 64 * MiB},
		{"assistance_open", l.AssistanceOpen, 10 * d.AssistanceOpen},
		{"assistance_per_run", l.AssistancePerRun, 10 * d.AssistancePerRun},
		{"interactions_per_run", l.InteractionsPerRun, 10 * d.InteractionsPerRun},
		{"state_per_run", l.StatePerRun, 10 * d.StatePerRun},
		{"skip_per_run", l.SkipPerRun, 10 * d.SkipPerRun},
		{"gap_per_run", l.GapPerRun, 10 * d.GapPerRun},
		{"coverage_per_run", l.CoveragePerRun, 10 * d.CoveragePerRun},
		{"coverage_keys", l.CoverageKeys, 10 * d.CoverageKeys},
		{"flush_records", l.FlushRecords, 1_000},
		{"flush_bytes", l.FlushBytes, 2 * MiB},
		{"progress_per_second", l.ProgressPerSecond, 50},
		{"progress_burst", l.ProgressBurst, 10 * d.ProgressBurst},
		{"log_bytes_per_second", l.LogBytesPerSecond, 8 * MiB},
	} {
		if b.value < 1 || b.value > b.max {
			return fmt.Errorf("limits.%s is %d: want 1 to %d", b.key, b.value, b.max)
		}
	}
	if l.RecordsPerRun < 0 {
		return fmt.Errorf("limits.records_per_run is %d: want 0 (unlimited) or more", l.RecordsPerRun)
	}
	return nil
}
