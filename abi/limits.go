package abi

const (
	KiB = 1 << 10
	MiB = 1 << 20
)

// Limits bound what a guest sends. Sizes are in bytes, and counts per run unless noted. The
// operator may change them within the bounds of Check; a manifest never raises one.
type Limits struct {
	FrameBytes     int // binary frame, stdio line or any other message
	FrameRecords   int // records of one frame
	RecordBytes    int // encoded data of one record
	CursorBytes    int
	TextBytes      int // message texts; the timeline cuts them further
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

// Bounds that no configuration changes.
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
	MaxHandles        = 64      // of one guest at once
	LogTailBytes      = 16 * KiB
)

// DefaultLimits returns the limits of a host without configuration.
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
