// Command report reads what go test -json writes, shows what go test would, and lists at the end what was skipped.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	ok, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// An event is an event of test2json.
type event struct {
	Action, Package, Test, Output string
}

// results are kept until a package is over.
type results struct {
	out     io.Writer
	said    map[[2]string][]string // by package and test
	skipped map[string][]string    // tests by package and reason
	over    int                    // packages
	failed  bool
}

// report prints the results, and reports whether there were packages and none failed.
func report(in io.Reader, out io.Writer) (ok bool, err error) {
	r := &results{out: out, said: map[[2]string][]string{}, skipped: map[string][]string{}}
	for d := json.NewDecoder(bufio.NewReader(in)); ; {
		var e event
		if err := d.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			return false, err
		}
		r.take(e)
	}
	if len(r.skipped) > 0 {
		fmt.Fprintln(out, "\nSkipped:")
	}
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(out, "  %s: %s\n", reason, strings.Join(r.skipped[reason], ", "))
	}
	return r.over > 0 && !r.failed, nil
}

func (r *results) take(e event) {
	at := [2]string{e.Package, e.Test}
	switch e.Action {
	case "output":
		r.said[at] = append(r.said[at], e.Output)
		return
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "build-fail", "fail":
		r.failed = true
		r.show(at)
	case "skip":
		if e.Test != "" {
			r.skip(e, r.said[at])
		}
	}
	if e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
		r.over++
		if e.Action != "fail" {
			r.verdict(at)
		}
		for k := range r.said { // of tests that a crash left without an end
			if k[0] == e.Package {
				if e.Action == "fail" {
					r.show(k)
				}
				delete(r.said, k)
			}
		}
	}
	delete(r.said, at)
}

func (r *results) show(at [2]string) {
	fmt.Fprint(r.out, strings.Join(r.said[at], ""))
	delete(r.said, at)
}

// verdict shows the line of a package that did not fail, if it has tests.
func (r *results) verdict(at [2]string) {
	for _, line := range r.said[at] {
		if strings.HasPrefix(line, "ok ") {
			fmt.Fprint(r.out, line)
		}
	}
}

// skip notes a test under the reason that it gave: "file_test.go:12: SKIPPED: why".
func (r *results) skip(e event, said []string) {
	reason := "no reason given"
	for _, line := range said {
		if _, why, found := strings.Cut(strings.TrimSpace(line), ".go:"); found {
			_, reason, _ = strings.Cut(why, ": ")
		}
	}
	reason = strings.TrimPrefix(reason, "SKIPPED: ")
	name := strings.TrimPrefix(e.Package, "github.com/sluicehost/sluice/") + " " + e.Test
	r.skipped[reason] = append(r.skipped[reason], name)
}
