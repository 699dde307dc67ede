// Package encode is the record encoder of the SDK. It writes the JSON of records directly
// into the frame in which they are sent.
//
// # Why it exists
//
// A connector is wasm, where a call, a taken branch or an allocation costs as much as a
// dozen other instructions and reflection even more, and it may emit a million records.
// encoding/json would account for most of its run time and most of its size. So each type
// is compiled once into an encoder: a closure for the type calls the closures of its parts
// and passes each a pointer to its value. Numbers, booleans and short strings, most of what
// records consist of, are written as words without a loop or a call.
//
// The output equals that of encoding/json, tags included, which TestEncodeAsEncodingJSON
// and FuzzEncode check, except that nothing is escaped for HTML and that NUL, which hosts
// refuse, becomes U+FFFD. JSON from marshalers and raw JSON is checked, because malformed
// JSON would end the run. BenchmarkEmitWasm in guest-sdk measures the encoder under wazero.
//
// A Stream encodes the records of one stream and leaves out members that the scope does not
// grant. A Record is for data without a struct.
package encode
