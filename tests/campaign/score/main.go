// Score prints what campaigns have counted, as a table.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/sluicehost/sluice/tests/campaign"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: score FILE")
		os.Exit(2)
	}
	if err := show(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(out io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("no score: %w", err)
	}
	defer f.Close()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "campaign\tcycles\truns struck\tacknowledged, checked\tlost\ttorn\treported\ttime\tseed\tbound\t")
	for in := bufio.NewScanner(f); in.Scan(); {
		var l campaign.Line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		took := time.Duration(l.Seconds * float64(time.Second)).Round(time.Second)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%d\t%s\t\n", l.Campaign, l.Cycles, l.Runs, l.Checked, l.Lost, l.Torn,
			l.Refused, took, l.Seed, bound(l))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, `
A bound says: no failure in n cycles means, with 95 % confidence, that fewer than 3/n of all such faults do harm.
SLUICE_SEED=SEED with the campaign's test makes the same choices again.`)
	return nil
}

// bound is the rule of three.
func bound(l campaign.Line) string {
	switch {
	case l.Failed:
		return "FAILED"
	case l.Cycles < 3:
		return "-"
	}
	return fmt.Sprintf("< %.2g %%", 300/float64(l.Cycles))
}
