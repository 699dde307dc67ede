package portal

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/tests/portal/site"
)

// printed checks that the PDF which the bank sent to the browser is kept byte for byte, and
// comes out under its name.
func (o *owner) printed() {
	o.t.Helper()
	name := site.NameOf(6, "CHF")
	o.do("files", "portal").want(o.t, 0, "statements", "application/pdf", name)
	to := filepath.Join(o.home, "saved")
	o.do("files", "portal", "statements", "--to", to).want(o.t, 0, "1 files, 0 of them were there")
	saved, err := filepath.Glob(filepath.Join(to, "statements", "*-"+name))
	if err != nil || len(saved) != 1 {
		o.t.Fatalf("saved: %v, %v", saved, err)
	}
	got, err := os.ReadFile(saved[0])
	if err != nil || !bytes.Equal(got, site.Document(6, "CHF")) {
		o.t.Errorf("what was saved is not what the bank sent: %d bytes, %v", len(got), err)
	}
}
