package interaction

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/host/run"
)

// A box is 48 bytes longer than the answer, only its asker opens it, and
// only for the question it was sealed for.
func TestBox(t *testing.T) {
	q := run.Question{RunID: "run_1", ConnectionID: "mail", InteractionID: "login"}
	k, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	plain := []byte("424242")
	box, err := seal(k.public, plain, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(box) != 6+48 {
		t.Errorf("the box has %d bytes", len(box))
	}
	if !bytes.Equal(plain, make([]byte, 6)) {
		t.Errorf("the plain bytes are left: %q", plain)
	}
	for name, other := range map[string]run.Question{
		"run":         {RunID: "run_2", ConnectionID: "mail", InteractionID: "login"},
		"connection":  {RunID: "run_1", ConnectionID: "bank", InteractionID: "login"},
		"interaction": {RunID: "run_1", ConnectionID: "mail", InteractionID: "login#2"},
		"lengths":     {RunID: "run_1m", ConnectionID: "ail", InteractionID: "login"},
	} {
		if _, err := k.open(box, other); err == nil {
			t.Errorf("opened for another %s", name)
		}
	}
	another, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := another.open(box, q); err == nil {
		t.Error("opened with another key")
	}
	if got, err := k.open(box, q); err != nil || string(got) != "424242" {
		t.Errorf("%q %v", got, err)
	}
	k.erase()
	if _, err := k.open(box, q); err == nil {
		t.Error("opened with a key that was erased")
	}
}

// An answer is unpacked as it was packed, and nothing else is an answer.
func FuzzUnpack(f *testing.F) {
	f.Add(pack(map[string]json.RawMessage{"code": json.RawMessage(`"1"`), "user": json.RawMessage(`null`)}))
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		data, err := unpack(b)
		if err != nil {
			return
		}
		again, err := unpack(pack(data))
		if err != nil || len(again) != len(data) {
			t.Fatalf("%v %v", err, again)
		}
		for name, value := range data {
			if !bytes.Equal(again[name], value) {
				t.Errorf("%q: %q became %q", name, value, again[name])
			}
		}
	})
}
