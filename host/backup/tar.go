package backup

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The subset of tar that an archive needs: regular files with mode 0600 and no owner. A header is determined by name,
// size and time, so a reader can compute and compare it. No other kind of entry can be represented.
const (
	block    = 512
	maxOctal = 1<<33 - 1 // eleven octal digits
)

// header returns the 512 bytes before a file. The part of the name before its last slash goes into the prefix field.
// Sizes that do not fit in octal are in base 256.
func header(name string, size int64, at time.Time) []byte {
	b := make([]byte, block)
	base := name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		copy(b[345:500], name[:i])
		base = name[i+1:]
	}
	copy(b[0:100], base)
	copy(b[100:], "0000600\x000000000\x000000000\x00")
	if size <= maxOctal {
		copy(b[124:], fmt.Sprintf("%011o\x00", size))
	} else {
		b[124] = 0x80
		for i, v := 135, size; i > 124 && v > 0; i, v = i-1, v>>8 {
			b[i] = byte(v)
		}
	}
	copy(b[136:], fmt.Sprintf("%011o\x00", at.Unix()))
	copy(b[148:156], "        ")
	b[156] = '0'
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// padding returns the bytes between a file and the next block.
func padding(size int64) []byte { return make([]byte, (block-size%block)%block) }

// trailer returns the end of an archive.
func trailer() []byte { return make([]byte, 2*block) }

// readFirst reads the header of the first file, the only one whose size and time are not known in advance.
func readFirst(r io.Reader, name string) (size int64, at time.Time, err error) {
	b := make([]byte, block)
	if err := fill(r, b, name); err != nil {
		return 0, at, err
	}
	size, err1 := strconv.ParseInt(string(b[124:135]), 8, 64)
	secs, err2 := strconv.ParseInt(string(b[136:147]), 8, 64)
	at = time.Unix(secs, 0).UTC()
	if err1 != nil || err2 != nil || size < 0 || secs < 0 || !bytes.Equal(b, header(name, size, at)) {
		return 0, at, refuse("it does not begin with %s as a backup does", name)
	}
	return size, at, nil
}

// expect reads bytes that must equal want.
func expect(r io.Reader, want []byte, where string) error {
	got := make([]byte, len(want))
	if err := fill(r, got, where); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return refuse("%s is altered", where)
	}
	return nil
}

func fill(r io.Reader, b []byte, where string) error {
	_, err := io.ReadFull(r, b)
	return broken(err, where)
}
