package drivers_test

import (
	"errors"
	"testing"

	"github.com/sluicehost/sluice/store/drivers"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"memory:", "memory:?memory=small", "badger:" + dir,
		"badger:" + dir + "?memory=small"} {
		a, err := drivers.Parse(address)
		if err != nil || a.String() != address {
			t.Fatalf("%s: %v %v", address, a, err)
		}
		s, err := drivers.Open(address, drivers.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range []string{"", "memory", "memory:x", "badger:", "badger", "mysql:x", "postgres:x",
		"postgres://h", "postgres://h/d?x=1", dir} {
		if s, err := drivers.Open(address, drivers.Options{}); s != nil || !errors.Is(err, drivers.ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
	for address, want := range map[string]string{
		"postgres://u:secret@h:7/d?x=1": "postgres://u@h:7/d?x=1", "postgrs://u:se@cret@h/d": "postgrs://u@h/d",
		"postgres://h/d": "postgres://h/d", "badger:/a@b": "badger:/a@b",
		"postgres://h/d?password=secret&x=1":        "postgres://h/d?password=…&x=1",
		"postgres://u@h/d?x=1;ssl%70assword=secret": "postgres://u@h/d?x=1&ssl%70assword=…",
		"postgres://u:se?cret@h/d?%zz=secret":       "postgres://u@h/d?%zz=…", "postgres:/u:secret@h/d": "postgres:/u@h/d",
		"/a:b@c": "/a:b@c", "postgres://u:secret/d": "postgres://u:…", "postgres://u:se/cret?ret": "postgres://u:…",
		"postgres://[::1]:5432/d": "postgres://[::1]:5432/d", "postgres://h:5432/d?x=a:b": "postgres://h:5432/d?x=a:b",
		"postgres://h/d?x=a:b": "postgres://h/d?x=a:b",
	} {
		if got := drivers.Shown(address); got != want {
			t.Errorf("%s is shown as %s", address, got)
		}
	}
	one, err := drivers.Parse("postgres://u:secret@localhost/d?data=dir")
	two, err2 := drivers.Parse("postgres://v@localhost/d?schema=other")
	if err != nil || err2 != nil || !one.Remote || one.Dir != "dir" || one.Name == two.Name {
		t.Errorf("%+v %v, %+v %v", one, err, two, err2)
	}
	if s, err := drivers.Open("memory:?x=1", drivers.Options{}); s != nil || err == nil {
		t.Errorf("an unknown parameter: %v", err)
	}
}
