package web_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/web"
)

// pngOf is the head of a PNG that claims dimensions.
func pngOf(w, h uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, w), h)
	b = append(b, 8, 6, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[12:]))
}

type viewCase struct {
	head []byte
	size int64
	want string
}

// packedPDF is a PDF whose objects are in a stream.
func packedPDF(objects, filter string) viewCase {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n7 0 obj<</Type/ObjStm/N 1/First 4" + filter + ">>stream\r\n")
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(objects)) // into memory
	_ = w.Close()
	b.WriteString("\nendstream endobj")
	return viewCase{b.Bytes(), int64(b.Len()), ""}
}

func viewed(c viewCase) viewCase {
	c.want = "application/pdf"
	return c
}

// TestViewable: what a file is decides, whatever it is called; nothing that runs is shown.
func TestViewable(t *testing.T) {
	small := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black, color.White})
	encoded := func(encode func(b *bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	oneGIF := encoded(func(b *bytes.Buffer) error { return gif.Encode(b, small, nil) })
	for name, c := range map[string]viewCase{
		"a PNG": {encoded(func(b *bytes.Buffer) error { return png.Encode(b, small) }), 100,
			"image/png"},
		"a JPEG": {encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, small, nil) }), 700,
			"image/jpeg"},
		"a GIF": {oneGIF, 40, "image/gif"},
		// never as a script: nosniff
		"a GIF that is a script": {[]byte("GIF89a/*\x01\x00\x00\x00\x00*/=1;alert(1)//"), 80, "image/gif"},
		"a PDF":                  {[]byte("%PDF-1.7\n"), 9, "application/pdf"},
		"a PDF that is a page":   {[]byte("%PDF-1.7\n<script>alert(1)</script>"), 40, "application/pdf"},
		"a PDF with a script": {[]byte("%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj"), 70,
			""},
		"a PDF with a form":          {[]byte("%PDF-1.7\n1 0 obj<</AcroForm 2 0 R>>endobj"), 40, ""},
		"a script by another name":   {[]byte("%PDF-1.7\n1 0 obj<</S/J#61vaScript/J#53(app.alert(1))>>endobj"), 60, ""},
		"a script that is packed":    packedPDF("<</S/JavaScript/JS(app.alert(1))>>", "/Filter/FlateDecode"),
		"packed, and a name ends it": packedPDF("1 0 2 5 /JS", "/Filter/FlateDecode"),
		"packed in another way":      packedPDF("<</Type/Page>>", "/Filter[/ASCIIHexDecode/FlateDecode]"),
		"packed with a predictor":    packedPDF("<</Type/Page>>", "/Filter/FlateDecode/DecodeParms<</Predictor 12>>"),
		"a bomb":                     packedPDF(strings.Repeat(" ", 70<<20), "/Filter/FlateDecode"),
		"a PDF that is packed":       viewed(packedPDF("1 0 2 9 <</Type/Page>><</Length 3>>", "/Filter /FlateDecode ")),
		"a PDF of too many bytes":    {[]byte("%PDF-1.7\n"), 17 << 20, ""},
		"a page that is a PDF":       {[]byte("<script>alert(1)</script>\n%PDF-1.7"), 40, ""},
		"a page":                     {[]byte("<!doctype html>"), 15, ""},
		"an SVG":                     {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), 60, ""},
		"an XML":                     {[]byte(`<?xml version="1.0"?><x/>`), 25, ""},
		"a script":                   {[]byte("alert(1)"), 8, ""},
		"nothing":                    {nil, 0, ""},
		"a PNG of huge width":        {pngOf(1<<31-1, 1), 33, ""},
		"a PNG of many pixels":       {pngOf(20_000, 20_000), 33, ""},
		"a PNG without pixels":       {pngOf(0, 7), 33, ""},
		"a PNG that breaks off":      {pngOf(3, 2)[:20], 20, ""},
		"a PNG of too many bytes":    {pngOf(3, 2), 65 << 20, ""},
	} {
		if got, err := web.Viewable(bytes.NewReader(c.head), c.size); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
