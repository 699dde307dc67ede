package site

import (
	"bytes"
	"fmt"
	"net/http"
)

// document sends the statement as PDF.
func (s *Site) document(w http.ResponseWriter, _ *http.Request, own *session) {
	if !own.prepared {
		http.Error(w, "there is no statement", http.StatusNotFound)
		return
	}
	s.truth.Printed++
	w.Header().Set("Content-Type", "application/pdf")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", NameOf(own.months, own.currency)))
	_, _ = w.Write(Document(own.months, own.currency)) // the browser has gone
}

// NameOf is what the file of a statement is called.
func NameOf(months int, currency string) string {
	return fmt.Sprintf("statement-2026-06-30-%d-%s.pdf", months, currency)
}

// Document is a statement as PDF, on one page: how many bookings there are, and the newest.
func Document(months int, currency string) []byte {
	newest := RowOf(0, currency)
	shown := fmt.Sprintf("BT /F 12 Tf 50 780 Td (Bank of Nowhere: %d bookings, the newest %s %s) Tj ET", months*perMonth,
		newest.Date, newest.Amount)
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(shown), shown),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	var out, places bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	for i, o := range objects {
		fmt.Fprintf(&places, "%010d 00000 n \n", out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at, n := out.Len(), len(objects)+1
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n%s", n, places.String())
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", n, at)
	return out.Bytes()
}
