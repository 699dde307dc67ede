package filesystem

import "testing"

func TestHome(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	for path, want := range map[string]string{
		"~": "/home/ada", "~/": "/home/ada", "~/mail": "/home/ada/mail", "~/a b/c": "/home/ada/a b/c",
		"~bob/mail": "~bob/mail", "/srv/~/x": "/srv/~/x", "./~": "./~", "": "", "mail": "mail",
	} {
		if got := Home(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
	t.Setenv("HOME", "")
	if got := Home("~/mail"); got != "~/mail" {
		t.Errorf("without a home: %q", got)
	}
	t.Setenv("HOME", "somewhere")
	if got := Home("~/mail"); got != "~/mail" {
		t.Errorf("with a home that depends on where one stands: %q", got)
	}
}
