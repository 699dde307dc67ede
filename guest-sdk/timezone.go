package guest

import "encoding/json"

// Timezone is the time zone of the machine that the connector runs on, by its name or as
// an offset such as +02:00, as the manifest asks. Without the binding it fails with
// abi.EDENIED.
func (r *Run) Timezone() (string, error) {
	b, err := r.call(r.port.timezone, nil)
	if err != nil {
		return "", err
	}
	var reply struct{ Timezone string }
	err = json.Unmarshal(b, &reply)
	return reply.Timezone, err
}
