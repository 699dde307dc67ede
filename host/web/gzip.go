package web

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// Gzip returns a compressed body, or nil if that is not shorter.
func Gzip(body []byte, level int) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil || out.Len() >= len(body) {
		return nil
	}
	return out.Bytes()
}

// SendGzip sends the compressed body to clients that accept it, and the plain one to others. packed
// may be nil.
//
// The length of a compressed answer reveals which parts of it are alike. An answer that repeats
// part of the request beside confidential data must not be compressed, since an attacker who makes
// requests and sees lengths could guess the data (BREACH).
func SendGzip(c *fiber.Ctx, plain, packed []byte) error {
	if packed == nil {
		return c.Send(plain)
	}
	c.Vary(fiber.HeaderAcceptEncoding)
	if !acceptsGzip(c.Get(fiber.HeaderAcceptEncoding)) {
		return c.Send(plain)
	}
	c.Set(fiber.HeaderContentEncoding, "gzip")
	return c.Send(packed)
}

// acceptsGzip parses Accept-Encoding (RFC 9110, section 12.5.3).
func acceptsGzip(header string) bool {
	any := false
	for item := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(item, ";")
		on := true
		if _, q, ok := strings.Cut(strings.ToLower(params), "q="); ok {
			weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			on = err == nil && weight > 0
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return on
		case "*":
			any = on
		}
	}
	return any
}
