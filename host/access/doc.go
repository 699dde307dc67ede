// Package access knows who asks, and how often they may: API keys, owner
// sessions, login tokens, signed interrupt tokens, token buckets, and the
// answers that idempotent requests get again (run-api.md sections 3 and 4).
//
// Everything that lasts is a document of the store. Of a credential only a
// digest is kept, so that whoever reads the store can use none. Nothing here
// knows HTTP; host/web reads headers and writes answers.
//
// What a caller presents is hostile: it is bounded before it is looked at, looked
// up by a digest or an id, compared in constant time, and never repeated in an
// error (A26).
package access
