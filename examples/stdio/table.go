package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"
)

// settings are the connection's (sluice.settings of the manifest).
type settings struct {
	CSV        string `json:"csv"`
	SampleRows *int   `json:"sample_rows"`
	Key        string `json:"key"`
}

// maxSampleRows bounds the sample table.
const maxSampleRows = 1_000_000

// table opens the table of the settings, or the sample.
func (s settings) table() *csv.Reader {
	text := io.Reader(strings.NewReader(s.CSV))
	if s.CSV == "" {
		rows := 100
		if s.SampleRows != nil {
			rows = max(0, min(*s.SampleRows, maxSampleRows))
		}
		text = &sample{rows: rows}
	}
	r := csv.NewReader(text)
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	r.TrimLeadingSpace = true
	return r
}

// A sample is a table of cash-book entries that is the same every time and grows
// at its end when it is given more rows.
type sample struct {
	rows, next int
	buf        []byte
}

// Read makes the next lines of the table.
func (s *sample) Read(p []byte) (int, error) {
	for len(s.buf) == 0 {
		switch {
		case s.next == 0:
			s.buf = append(s.buf, "id,date,account,amount\n"...)
		case s.next > s.rows:
			return 0, io.EOF
		default:
			s.buf = fmt.Appendf(s.buf, "entry-%06d,%s,%s,%d.%02d\n", s.next, day(s.next), account(s.next),
				s.next*37%900+1, s.next*13%100)
		}
		s.next++
	}
	n := copy(p, s.buf)
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	return n, nil
}

func day(n int) string {
	return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n/4).Format(time.DateOnly)
}

func account(n int) string {
	return [...]string{"rent", "food", "books", "travel", "gifts"}[n*7%5]
}

// keyColumn returns the position of the column that tells rows apart: the one of
// the settings, or one called id.
func keyColumn(columns []string, key string) (int, bool) {
	if key == "" {
		key = "id"
	}
	for i, c := range columns {
		if strings.EqualFold(c, key) {
			return i, true
		}
	}
	return 0, false
}

// dateOf returns the value of a column called date, if it is one.
func dateOf(columns, row []string) (time.Time, bool) {
	for i, c := range columns {
		if strings.EqualFold(c, "date") {
			t, err := time.Parse(time.DateOnly, row[i])
			return t, err == nil
		}
	}
	return time.Time{}, false
}

// valuesOf is a row by column, as it is spelled.
func valuesOf(columns, row []string) map[string]string {
	m := make(map[string]string, len(columns))
	for i, c := range columns {
		m[c] = row[i]
	}
	return m
}
