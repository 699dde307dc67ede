// Package export writes records the way people and programs take them away:
// as the Record of run-api.md A212, one per line of JSON, and as CSV (A215). The
// command line and the API share it, so that both write the same bytes.
//
// Data, keys and names of members are a connector's: hostile. What it writes is
// for files and downloads; CSV is made harmless to spreadsheets (S50), JSON is
// not escaped for HTML.
package export
