package guesthttp

// A Host is the interface that fakes of the tests have.
type Host = host

// Over returns a Transport over a fake.
func Over(h Host) *Transport { return &Transport{host: h} }
