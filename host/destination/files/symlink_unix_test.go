//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
	"github.com/sluicehost/sluice/host/destination/parquet"
)

// Links that somebody puts into the directory of a destination lead no write out of it, and
// remove nothing there.
func TestLinks(t *testing.T) {
	for _, k := range []files.Kind{files.JSONL, files.CSV, parquet.Kind} {
		fresh := scene(destination.Current, 4, 30)
		for _, name := range []string{"_sluice_manifest.json", "_sluice_manifest.json.tmp", "_sluice_lock",
			"mail_items", "_files", "part"} {
			for _, when := range []string{"before", "meanwhile"} {
				t.Run(k.Format.Name()+"/"+name+"/"+when, func(t *testing.T) {
					dir, outside := filepath.Join(t.TempDir(), "out"), t.TempDir()
					notes := filepath.Join(outside, "notes")
					must(t, os.WriteFile(notes, []byte("mine"), 0o600))
					must(t, os.Mkdir(filepath.Join(outside, "folder"), 0o700))
					target := notes
					if name == "mail_items" || name == "_files" {
						target = filepath.Join(outside, "folder")
					}
					link := func() {
						at := filepath.Join(dir, name)
						if name == "part" { // the next one, whatever its number
							parts, _ := filepath.Glob(filepath.Join(dir, "mail_items", "*"))
							for _, p := range parts {
								must(t, os.Remove(p))
								must(t, os.Symlink(notes, p))
							}
							return
						}
						must(t, os.RemoveAll(at))
						must(t, os.Symlink(target, at))
					}
					if when == "before" {
						must(t, os.MkdirAll(dir, 0o700))
						link()
					}
					sink, err := k.Open(t.Context(), k.Scheme()+dir, owner)
					if err == nil {
						_, err = fresh.play(t.Context(), sink, 2)
						if when == "meanwhile" {
							must(t, err)
							link()
							_, err = fresh.play(t.Context(), sink, 4)
						}
						_ = sink.Clear(t.Context(), id)
						_ = sink.Describe(t.Context(), nil) // any step settles
						_ = sink.Close()
					}
					t.Logf("said: %v", err)
					if text, err := os.ReadFile(notes); err != nil || string(text) != "mine" {
						t.Errorf("what is outside holds %q: %v", text, err)
					}
					var found []string
					must(t, filepath.Walk(outside, func(p string, _ os.FileInfo, err error) error {
						found = append(found, strings.TrimPrefix(p, outside))
						return err
					}))
					if strings.Join(found, " ") != " /folder /notes" {
						t.Errorf("outside there is %q", found)
					}
				})
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
