package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// join joins the parts that are not empty.
func join(sep string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, sep)
}

// count writes 12345 as 12,345.
func count[N int | int64 | uint64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// recordCount writes how many records.
func recordCount(n int64) string {
	return countOf(n, "record")
}

// countOf writes 1 stream, 12 streams.
func countOf[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(n) + " " + what + "s"
}

// clock writes a duration as people read one.
func clock(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// bytesText writes a size in binary units.
func bytesText[N int | int64 | uint64](n N) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, suffix := float64(n)/unit, "KiB"
	for _, s := range []string{"MiB", "GiB", "TiB"} {
		if value < unit {
			break
		}
		value, suffix = value/unit, s
	}
	return fmt.Sprintf("%.1f %s", value, suffix)
}

// timeText writes a moment in local time for a terminal, and as the API does
// elsewhere.
func (c *command) timeText(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case c.screenOut().live:
		return t.Local().Format("2006-01-02 15:04:05")
	}
	return t.UTC().Format(time.RFC3339)
}

// table prints aligned columns with headings on a terminal, tab-separated lines
// without headings elsewhere. It cleans cells and prints nothing for no rows.
func (c *command) table(heads []string, rows [][]string) error {
	if !c.screenOut().live {
		for _, r := range rows {
			if _, err := fmt.Fprintln(c.out, strings.Join(cleanCells(r), "\t")); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for i := range heads {
		heads[i] = strings.ToUpper(heads[i])
	}
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(cleanCells(r), "\t"))
	}
	return w.Flush()
}

// printList prints what was found: v with --json, else the rows.
func (c *command) printList(v any, heads []string, rows [][]string) error {
	if c.json {
		return printJSON(c.out, v)
	}
	return c.table(heads, rows)
}

func cleanCells(cells []string) []string {
	out := make([]string, len(cells))
	for i, s := range cells {
		out[i] = abi.Clean(s)
	}
	return out
}

// printJSON writes one value on one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
