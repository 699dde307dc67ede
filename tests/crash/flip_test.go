package crash

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/campaign"
)

// contents is what a dump printed, by name.
type contents map[string]string

// dumpOf reads a data directory in a process of its own, which must not crash.
func dumpOf(t *testing.T, data string) contents {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = built.dir
	cmd.Env = append(os.Environ(), dumped+"="+data)
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.Output()
	if err != nil {
		var errs []byte
		if e, ok := err.(*exec.ExitError); ok {
			errs = e.Stderr
		}
		t.Errorf("reading it ended with %v\n%.3000s", err, errs)
	}
	all := contents{}
	for line := range strings.Lines(string(out)) {
		name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all[name] = what
	}
	return all
}

// against compares contents with what they were. It reports whether any error was
// given, and returns what changed silently.
func (now contents) against(was contents) (reported bool, silent []string) {
	for name, what := range now {
		if strings.HasPrefix(what, trouble) {
			reported = true
			if name == "open" { // the store says that it is not to be trusted, and is read-only
				return true, nil
			}
			continue
		}
		if what != was[name] {
			silent = append(silent, name)
		}
	}
	for name := range was {
		if now[name] == "" {
			silent = append(silent, name)
		}
	}
	return reported, silent
}

// wholeDirectory is a data directory with at least one of each kind of thing.
func wholeDirectory(t *testing.T) program {
	t.Helper()
	p := program{t: t, data: filepath.Join(t.TempDir(), "data")}
	newWitness(p).undisturbed(pagesPerRun)
	for _, name := range []string{"token", "password"} {
		set := p.command("secret", "set", "pages", name, "--file", "-")
		set.Stdin = strings.NewReader("the " + name)
		if o := p.finish(set); o.code != 0 {
			t.Fatal(o.errs)
		}
	}
	for _, args := range [][]string{{"install", built.pages}, {"grant", "pages", "--expires", "30d"}} {
		if o := p.do(args...); o.code != 0 {
			t.Fatal(o.errs)
		}
	}
	if o := p.finish(p.useCache()); o.code != 0 { // fills the cache, and makes a second run
		t.Fatal(o.out, o.errs)
	}
	return p
}

// useCache runs from the module and the cache in the data directory.
func (p program) useCache() *exec.Cmd {
	cmd := p.command("run", "pages", "--json", "--no-interactive")
	cmd.Env = append(cmd.Env, "SLUICE_CACHE="+filepath.Join(p.data, "cache"))
	return cmd
}

// files returns the files of the directory that are not empty. Empty ones, such as lock
// and unclean, have no bit to flip.
func (p program) files() (paths []string, sizes []int64) {
	p.t.Helper()
	err := filepath.WalkDir(p.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			rel, _ := filepath.Rel(p.data, path)
			paths, sizes = append(paths, rel), append(sizes, info.Size())
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return paths, sizes
}

// copied returns a copy of the directory.
func (p program) copied(t *testing.T) program {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	if out, err := exec.Command("cp", "-a", p.data, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program{t: t, data: to}
}

// TestFlipAnywhere: a flipped bit in any file of a data directory is reported or
// harmless: what is read is what was written, or an error. Nothing crashes, the first time or the second.
func TestFlipAnywhere(t *testing.T) {
	c := campaign.New(t, "one bit flipped, any file")
	p := wholeDirectory(t)
	was := dumpOf(t, p.data)
	if reported, silent := dumpOf(t, p.data).against(was); reported || silent != nil {
		t.Fatalf("read twice without a flip: reported %v, changed %v", reported, silent)
	}
	paths, sizes := p.files()
	for range c.Length(8, 5) {
		i := c.IntN(len(paths))
		at, bit := c.Int64N(sizes[i]), byte(1)<<c.IntN(8)
		t.Run(filepath.Base(paths[i]), func(t *testing.T) {
			flipped := p.copied(t)
			flip(t, filepath.Join(flipped.data, paths[i]), at, bit)
			c.Cycle()
			c.Checked(len(was))
			reported := false
			for range 2 { // there is no crash loop
				told, silent := dumpOf(t, flipped.data).against(was)
				reported = reported || told
				if silent != nil && !reported {
					c.Torn("bit %#x of byte %d of %s changed, and nothing told: %v", bit, at, paths[i], silent)
				}
			}
			if flipped.runs(c, paths[i]) || reported {
				c.Refused()
			}
			if t.Failed() {
				t.Errorf("with bit %#x of byte %d of %s", bit, at, paths[i])
			}
		})
	}
}

func flip(t *testing.T, path string, at int64, bit byte) {
	t.Helper()
	fi, err := os.Stat(path)
	if err == nil {
		err = os.Chmod(path, fi.Mode()|0o200)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= bit
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Chmod(fi.Mode()); err != nil {
		t.Fatal(err)
	}
}

// runs starts a run when the flip hit something that only a run reads: it must succeed,
// or say what is wrong.
func (p program) runs(c *campaign.Campaign, path string) (refused bool) {
	p.t.Helper()
	switch top, _, _ := strings.Cut(path, string(filepath.Separator)); top {
	case "cache", "modules", "host-id":
	default:
		return false
	}
	o := p.finish(p.useCache())
	var e struct {
		Status, Error, Message string
	}
	if err := json.Unmarshal([]byte(o.out), &e); err != nil || strings.Contains(o.errs, "goroutine ") ||
		o.code != 0 && e.Message == "" && e.Status == "" {
		c.Torn("a run ended with code %d: %.1000s%.2000s", o.code, o.out, o.errs)
	}
	return o.code != 0
}
