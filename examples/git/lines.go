package main

import (
	"bytes"
	"math/bits"
)

// maxLineWork bounds one comparison, in steps of 64 lines: about 50,000 changed
// lines on either side.
const maxLineWork = 40_000_000

// A lineCount is how many lines a change adds and takes away; negative numbers
// stand for unknown.
type lineCount struct{ added, deleted int }

var unknownLines = lineCount{-1, -1}

// A lineCounter compares texts. It keeps its memory for the next pair.
type lineCounter struct {
	table *interner
	x, y  []int32
}

func newLineCounter() *lineCounter { return &lineCounter{table: newInterner()} }

// count compares two texts line by line, as git's minimal diff does: what is in
// neither of the counts is a longest common subsequence. The numbers follow from
// its length, so no script is ever made, and what is not changed is cut off
// first.
func (c *lineCounter) count(a, b []byte) lineCount {
	a, b = trimCommon(a, b)
	all := lineCount{added: lines(b), deleted: lines(a)}
	if all.added == 0 || all.deleted == 0 {
		return all
	}
	c.table.reset(all.added + all.deleted)
	c.x, c.y = c.table.numbers(c.x[:0], a), c.table.numbers(c.y[:0], b)
	// A line that the other side lacks is in no common subsequence.
	x, y := shared(c.x, c.y, len(c.table.lines))
	if len(x) > len(y) {
		x, y = y, x
	}
	if int64(len(y))*int64((len(x)+63)/64) > maxLineWork {
		return unknownLines
	}
	common := commonLength(x, y, len(c.table.lines))
	return lineCount{added: all.added - common, deleted: all.deleted - common}
}

// lines counts lines; a last one without an end counts.
func lines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// trimCommon cuts off the lines that both texts start and end with.
func trimCommon(a, b []byte) ([]byte, []byte) {
	n := commonPrefix(a, b)
	if n == len(a) && n == len(b) {
		return nil, nil
	}
	n = bytes.LastIndexByte(a[:n], '\n') + 1
	a, b = a[n:], b[n:]
	n = commonSuffix(a, b)
	start := 0
	if !atLine(a, len(a)-n) || !atLine(b, len(b)-n) { // the first line of it is half
		start = bytes.IndexByte(a[len(a)-n:], '\n') + 1
		if start == 0 {
			return a, b
		}
	}
	return a[:len(a)-n+start], b[:len(b)-n+start]
}

// atLine reports whether a line starts at i.
func atLine(b []byte, i int) bool { return i == 0 || b[i-1] == '\n' }

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+256 <= n && bytes.Equal(a[i:i+256], b[i:i+256]); i += 256 {
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+256 <= n && bytes.Equal(a[len(a)-i-256:len(a)-i], b[len(b)-i-256:len(b)-i]) {
		i += 256
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}

// numbers appends the numbers of the lines of a text.
func (t *interner) numbers(to []int32, text []byte) []int32 {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		to = append(to, t.number(text[:end]))
		text = text[end:]
	}
	return to
}

// shared drops, in place, the numbers that only one side has.
func shared(x, y []int32, different int) ([]int32, []int32) {
	sides := make([]uint8, different)
	for _, n := range x {
		sides[n] |= 1
	}
	for _, n := range y {
		sides[n] |= 2
	}
	keep := func(side []int32) []int32 {
		out := side[:0]
		for _, n := range side {
			if sides[n] == 3 {
				out = append(out, n)
			}
		}
		return out
	}
	return keep(x), keep(y)
}

// commonLength is the length of a longest common subsequence, by the bit-vector
// recurrence of Hyyrö: bit i of v is clear when line i of x adds one to the
// length so far.
//
//	u = v & m;  v = (v + u) | (v - u)
//
// where m marks the lines of x that equal the line of y at hand.
func commonLength(x, y []int32, different int) int {
	if len(x) == 0 {
		return 0
	}
	positions := positionsOf(x, different)
	words := (len(x) + 63) / 64
	v, m := make([]uint64, words), make([]uint64, words)
	for i := range v {
		v[i] = ^uint64(0)
	}
	for _, line := range y {
		at := positions.of(line)
		for _, i := range at {
			m[i/64] |= 1 << (i % 64)
		}
		var carry uint64
		for w := int(at[0] / 64); w < words; w++ {
			u := v[w] & m[w]
			if u == 0 && carry == 0 {
				continue
			}
			var sum uint64
			sum, carry = bits.Add64(v[w], u, carry)
			v[w] = sum | (v[w] &^ u)
		}
		for _, i := range at {
			m[i/64] = 0
		}
	}
	length := 0
	for w := range v {
		in := ^uint64(0)
		if rest := len(x) - w*64; rest < 64 {
			in = 1<<rest - 1
		}
		length += bits.OnesCount64(^v[w] & in)
	}
	return length
}

// A positionList holds where each number occurs.
type positionList struct{ start, at []int32 }

func positionsOf(x []int32, different int) positionList {
	p := positionList{start: make([]int32, different+1), at: make([]int32, len(x))}
	for _, n := range x {
		p.start[n+1]++
	}
	for i := range different {
		p.start[i+1] += p.start[i]
	}
	next := append([]int32(nil), p.start...)
	for i, n := range x {
		p.at[next[n]] = int32(i)
		next[n]++
	}
	return p
}

func (p positionList) of(n int32) []int32 { return p.at[p.start[n]:p.start[n+1]] }
