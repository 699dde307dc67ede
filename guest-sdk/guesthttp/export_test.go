package guesthttp

import "net/http"

// A Host is the interface that fakes of the tests have.
type Host = host

// Over returns a Transport over a fake.
func Over(h Host) *Transport { return &Transport{host: h} }

// A Read is a reply as one of its readers has it.
type Read struct {
	Handle int32
	Status int
	Header http.Header
	Bytes  int64
}

// QuickReply is the reader of replies as hosts spell them, StrictReply that of
// any other.
func QuickReply(text string) (Read, bool) {
	r, ok := quickReply([]byte(text))
	return Read{r.handle, r.status, r.header, r.bytes}, ok
}

func StrictReply(text string) (Read, error) {
	r := reply{handle: -1, bytes: -1}
	err := r.strict([]byte(text), true)
	return Read{r.handle, r.status, r.header, r.bytes}, err
}
