// Package encode is the record encoder of the SDK: it writes the JSON of records
// into the frame they are sent in.
//
// # Why it exists
//
// A connector is wasm, where a call, a taken branch or an allocation costs as
// much as a dozen other instructions and reflection more than that, and it may
// emit a million records. encoding/json would be most of the time it runs and
// most of the bytes it links. So a type is compiled once into a program: a
// closure for the type that calls the closures of its parts, each given a
// pointer to its value. Numbers, truth values and short texts, most of what
// records are made of, are written as words without a loop or a call.
//
// What comes out is what encoding/json makes of the same value, tags included,
// which TestEncodeAsEncodingJSON and FuzzEncode compare, except that nothing is
// escaped for HTML and that NUL, which hosts refuse, becomes U+FFFD. JSON that
// others made is checked before it is taken over: what is no JSON would end the
// run. BenchmarkEmitWasm in guest-sdk measures it under wazero.
//
// A Stream adds what one stream needs: it leaves out the members that the scope
// does not grant. A Record is for data that has no struct.
package encode
