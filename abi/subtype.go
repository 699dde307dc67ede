package abi

// The subtypes of R217.
const (
	VAbiFault                              Subtype = "abi_fault"
	VAssistanceDuplicateId                 Subtype = "assistance_duplicate_id"
	VAssistanceForUndeclaredStream         Subtype = "assistance_for_undeclared_stream"
	VAssistanceInvalidAttachments          Subtype = "assistance_invalid_attachments"
	VAssistanceInvalidId                   Subtype = "assistance_invalid_id"
	VAssistanceInvalidInputSchema          Subtype = "assistance_invalid_input_schema"
	VAssistanceInvalidMessage              Subtype = "assistance_invalid_message"
	VAssistanceInvalidOwnerAction          Subtype = "assistance_invalid_owner_action"
	VAssistanceInvalidProgressPosture      Subtype = "assistance_invalid_progress_posture"
	VAssistanceInvalidResponseObligation   Subtype = "assistance_invalid_response_obligation"
	VAssistanceInvalidSensitivity          Subtype = "assistance_invalid_sensitivity"
	VAssistanceInvalidStream               Subtype = "assistance_invalid_stream"
	VAssistanceInvalidTimeout              Subtype = "assistance_invalid_timeout"
	VAssistanceLimitExceeded               Subtype = "assistance_limit_exceeded"
	VAssistanceObligationConflict          Subtype = "assistance_obligation_conflict"
	VAssistanceResponseRequiredUnsupported Subtype = "assistance_response_required_unsupported"
	VAssistanceStatusInvalidId             Subtype = "assistance_status_invalid_id"
	VAssistanceStatusInvalidMessage        Subtype = "assistance_status_invalid_message"
	VAssistanceStatusInvalidStatus         Subtype = "assistance_status_invalid_status"
	VAssistanceStatusUnknownId             Subtype = "assistance_status_unknown_id"
	VCoverageDuplicateKey                  Subtype = "coverage_duplicate_key"
	VCoverageDuplicateReport               Subtype = "coverage_duplicate_report"
	VCoverageForStateStreamChild           Subtype = "coverage_for_state_stream_child"
	VCoverageForUndeclaredStream           Subtype = "coverage_for_undeclared_stream"
	VCoverageInvalidKeys                   Subtype = "coverage_invalid_keys"
	VCoverageInvalidReferenceOnly          Subtype = "coverage_invalid_reference_only"
	VCoverageInvalidStateStream            Subtype = "coverage_invalid_state_stream"
	VCoverageInvalidStream                 Subtype = "coverage_invalid_stream"
	VCoverageKeyInTwoSets                  Subtype = "coverage_key_in_two_sets"
	VCoverageKeyNotRequired                Subtype = "coverage_key_not_required"
	VCoverageParentNotDeclared             Subtype = "coverage_parent_not_declared"
	VDetailGapForUndeclaredStream          Subtype = "detail_gap_for_undeclared_stream"
	VDetailGapInvalidField                 Subtype = "detail_gap_invalid_field"
	VDetailGapInvalidStream                Subtype = "detail_gap_invalid_stream"
	VDetailGapRecoveredInvalid             Subtype = "detail_gap_recovered_invalid"
	VDoneErrorOnSuccess                    Subtype = "done_error_on_success"
	VDoneInvalidError                      Subtype = "done_invalid_error"
	VDoneInvalidErrorCode                  Subtype = "done_invalid_error_code"
	VDoneInvalidErrorMessage               Subtype = "done_invalid_error_message"
	VDoneInvalidErrorRecoveryHint          Subtype = "done_invalid_error_recovery_hint"
	VDoneInvalidErrorRetryable             Subtype = "done_invalid_error_retryable"
	VDoneInvalidRecordsEmitted             Subtype = "done_invalid_records_emitted"
	VDoneInvalidStatus                     Subtype = "done_invalid_status"
	VDoneRecordsEmittedMismatch            Subtype = "done_records_emitted_mismatch"
	VExitCodeMismatch                      Subtype = "exit_code_mismatch"
	VExitTimeoutAfterDone                  Subtype = "exit_timeout_after_done"
	VFieldLimitExceeded                    Subtype = "field_limit_exceeded"
	VFrameInvalidJson                      Subtype = "frame_invalid_json"
	VFrameInvalidUtf8                      Subtype = "frame_invalid_utf8"
	VFrameMalformed                        Subtype = "frame_malformed"
	VFrameNotObject                        Subtype = "frame_not_object"
	VFrameTooDeep                          Subtype = "frame_too_deep"
	VFrameTooLarge                         Subtype = "frame_too_large"
	VInteractionForUndeclaredStream        Subtype = "interaction_for_undeclared_stream"
	VInteractionInvalidKind                Subtype = "interaction_invalid_kind"
	VInteractionInvalidMessage             Subtype = "interaction_invalid_message"
	VInteractionInvalidRequestId           Subtype = "interaction_invalid_request_id"
	VInteractionInvalidSchema              Subtype = "interaction_invalid_schema"
	VInteractionInvalidStream              Subtype = "interaction_invalid_stream"
	VInteractionInvalidTimeout             Subtype = "interaction_invalid_timeout"
	VInteractionWithoutBinding             Subtype = "interaction_without_binding"
	VMessageAfterDone                      Subtype = "message_after_done"
	VMessageLimitExceeded                  Subtype = "message_limit_exceeded"
	VOutputWhileWaiting                    Subtype = "output_while_waiting"
	VProgressForUndeclaredStream           Subtype = "progress_for_undeclared_stream"
	VProgressInvalidCount                  Subtype = "progress_invalid_count"
	VProgressInvalidMessage                Subtype = "progress_invalid_message"
	VProgressInvalidStream                 Subtype = "progress_invalid_stream"
	VProgressInvalidTotal                  Subtype = "progress_invalid_total"
	VRecordFieldsOutsideScope              Subtype = "record_fields_outside_scope"
	VRecordForUndeclaredStream             Subtype = "record_for_undeclared_stream"
	VRecordInvalidData                     Subtype = "record_invalid_data"
	VRecordInvalidEmittedAt                Subtype = "record_invalid_emitted_at"
	VRecordInvalidKey                      Subtype = "record_invalid_key"
	VRecordInvalidOp                       Subtype = "record_invalid_op"
	VRecordKeyTooLong                      Subtype = "record_key_too_long"
	VRecordOutsideResources                Subtype = "record_outside_resources"
	VRecordOutsideTimeRange                Subtype = "record_outside_time_range"
	VRecordTooLarge                        Subtype = "record_too_large"
	VSecretLeak                            Subtype = "secret_leak"
	VSkipForUndeclaredStream               Subtype = "skip_for_undeclared_stream"
	VSkipInvalidContinuation               Subtype = "skip_invalid_continuation"
	VSkipInvalidMessage                    Subtype = "skip_invalid_message"
	VSkipInvalidReason                     Subtype = "skip_invalid_reason"
	VSkipInvalidRecoveryHint               Subtype = "skip_invalid_recovery_hint"
	VSkipInvalidResources                  Subtype = "skip_invalid_resources"
	VSkipInvalidStream                     Subtype = "skip_invalid_stream"
	VSkipInvalidTimeRange                  Subtype = "skip_invalid_time_range"
	VStateCursorTooLarge                   Subtype = "state_cursor_too_large"
	VStateForDependentStream               Subtype = "state_for_dependent_stream"
	VStateForUndeclaredStream              Subtype = "state_for_undeclared_stream"
	VStateInvalidCursor                    Subtype = "state_invalid_cursor"
	VStateInvalidStream                    Subtype = "state_invalid_stream"
	VUnknownMessageType                    Subtype = "unknown_message_type"
)

// Subtypes lists every subtype with the phrase that follows the message type in
// a failure message. It is never changed.
var Subtypes = map[Subtype]string{
	VAbiFault:                              "made a call with a bad pointer or length, or in the wrong order",
	VAssistanceDuplicateId:                 "reuses the id of an assistance that is still open",
	VAssistanceForUndeclaredStream:         "named a stream that is not in scope",
	VAssistanceInvalidAttachments:          "has attachments of the wrong shape",
	VAssistanceInvalidId:                   "has an assistance_request_id that is not a text",
	VAssistanceInvalidInputSchema:          "has an input_schema that is not an object",
	VAssistanceInvalidMessage:              "needs a message text",
	VAssistanceInvalidOwnerAction:          "has an unknown owner_action",
	VAssistanceInvalidProgressPosture:      "has an unknown progress_posture",
	VAssistanceInvalidResponseObligation:   "has an unknown response_obligation",
	VAssistanceInvalidSensitivity:          "has an unknown sensitivity",
	VAssistanceInvalidStream:               "has a stream that is not a text",
	VAssistanceInvalidTimeout:              "has a timeout_seconds that is not a number above 0",
	VAssistanceLimitExceeded:               "leaves too many assistances open",
	VAssistanceObligationConflict:          "gives response_obligation and response_contract with different values",
	VAssistanceResponseRequiredUnsupported: "asks for a response; use INTERACTION for that",
	VAssistanceStatusInvalidId:             "needs the id of an assistance",
	VAssistanceStatusInvalidMessage:        "has a message that is not a text",
	VAssistanceStatusInvalidStatus:         "has an unknown status",
	VAssistanceStatusUnknownId:             "names an assistance that is not open",
	VCoverageDuplicateKey:                  "lists a key twice",
	VCoverageDuplicateReport:               "repeats a report of the same stream and state_stream",
	VCoverageForStateStreamChild:           "reports a stream that is covered by its state_stream",
	VCoverageForUndeclaredStream:           "named a stream that is not in scope",
	VCoverageInvalidKeys:                   "has a key list of the wrong shape",
	VCoverageInvalidReferenceOnly:          "needs reference_only: true",
	VCoverageInvalidStateStream:            "needs the name of a state_stream",
	VCoverageInvalidStream:                 "needs the name of a stream",
	VCoverageKeyInTwoSets:                  "lists a key in two outcomes",
	VCoverageKeyNotRequired:                "lists a key that is not in required_keys",
	VCoverageParentNotDeclared:             "names a state_stream that is no parent of the stream",
	VDetailGapForUndeclaredStream:          "named a stream that is not in scope",
	VDetailGapInvalidField:                 "has a member of the wrong type",
	VDetailGapInvalidStream:                "needs the name of a stream",
	VDetailGapRecoveredInvalid:             "has the wrong shape",
	VDoneErrorOnSuccess:                    "carries an error although it succeeded",
	VDoneInvalidError:                      "has an error of the wrong shape",
	VDoneInvalidErrorCode:                  "has an error code of the wrong form",
	VDoneInvalidErrorMessage:               "has an error without a message text",
	VDoneInvalidErrorRecoveryHint:          "has a recovery hint of the wrong shape",
	VDoneInvalidErrorRetryable:             "has a retryable that is not true or false",
	VDoneInvalidRecordsEmitted:             "has a records_emitted that is not a count",
	VDoneInvalidStatus:                     "has an unknown status",
	VDoneRecordsEmittedMismatch:            "reports another number of records than the host received",
	VExitCodeMismatch:                      "disagrees with the exit code",
	VExitTimeoutAfterDone:                  "was not followed by an exit in time",
	VFieldLimitExceeded:                    "has a member over its limit",
	VFrameInvalidJson:                      "is not well-formed JSON with unique member names",
	VFrameInvalidUtf8:                      "is not UTF-8",
	VFrameMalformed:                        "is not a well-formed record frame",
	VFrameNotObject:                        "is not a JSON object",
	VFrameTooDeep:                          "is nested too deeply",
	VFrameTooLarge:                         "is larger than a message may be",
	VInteractionForUndeclaredStream:        "named a stream that is not in scope",
	VInteractionInvalidKind:                "has an unknown kind",
	VInteractionInvalidMessage:             "needs a message text",
	VInteractionInvalidRequestId:           "needs a request_id",
	VInteractionInvalidSchema:              "has a schema that is not an object",
	VInteractionInvalidStream:              "has a stream that is not a text",
	VInteractionInvalidTimeout:             "has a timeout_seconds that is not a number above 0",
	VInteractionWithoutBinding:             "was sent although START offered no interactive binding",
	VMessageAfterDone:                      "was sent after DONE",
	VMessageLimitExceeded:                  "was sent more often than a run may",
	VOutputWhileWaiting:                    "was sent while an interaction was open",
	VProgressForUndeclaredStream:           "named a stream that is not in scope",
	VProgressInvalidCount:                  "has a count that is not a number of at least 0",
	VProgressInvalidMessage:                "needs a message text",
	VProgressInvalidStream:                 "has a stream that is not a text",
	VProgressInvalidTotal:                  "has a total that is not a number of at least 0",
	VRecordFieldsOutsideScope:              "has a member that the scope does not grant",
	VRecordForUndeclaredStream:             "named a stream that is not in scope",
	VRecordInvalidData:                     "has data that is not an object",
	VRecordInvalidEmittedAt:                "needs an emitted_at text",
	VRecordInvalidKey:                      "needs a key: a text or a list of texts, none empty",
	VRecordInvalidOp:                       "has an unknown op",
	VRecordKeyTooLong:                      "has a key over the limit",
	VRecordOutsideResources:                "is not one of the granted resources",
	VRecordOutsideTimeRange:                "is outside of the granted time range",
	VRecordTooLarge:                        "has data over the limit",
	VSecretLeak:                            "contains a protected value",
	VSkipForUndeclaredStream:               "named a stream that is not in scope",
	VSkipInvalidContinuation:               "has a continuation of the wrong shape",
	VSkipInvalidMessage:                    "has a message that is not a text",
	VSkipInvalidReason:                     "has a reason that is not a text",
	VSkipInvalidRecoveryHint:               "has a recovery hint of the wrong shape",
	VSkipInvalidResources:                  "has a resource list of the wrong shape",
	VSkipInvalidStream:                     "has a stream that is not a text",
	VSkipInvalidTimeRange:                  "has a time range of the wrong shape",
	VStateCursorTooLarge:                   "has a cursor over the limit",
	VStateForDependentStream:               "is for a stream whose cursor belongs to its parent",
	VStateForUndeclaredStream:              "named a stream that is not in scope",
	VStateInvalidCursor:                    "has a cursor that is neither an object nor null",
	VStateInvalidStream:                    "needs the name of a stream",
	VUnknownMessageType:                    "is not a message type of the protocol",
}
