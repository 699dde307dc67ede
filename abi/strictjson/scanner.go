package strictjson

import (
	"fmt"
	"hash/maphash"
	"unicode/utf8"
)

// MaxDepth is the most containers that may be open at once, the outermost included.
const MaxDepth = 64

// A Kind is the type of a JSON value.
type Kind uint8

const (
	KindNull   Kind = 1
	KindBool   Kind = 2
	KindNumber Kind = 3
	KindString Kind = 4
	KindArray  Kind = 5
	KindObject Kind = 6
)

var kindNames = [...]string{"invalid", "null", "bool", "number", "string", "array", "object"}

// String returns the JSON name of the type, such as "array".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// kinds maps the first byte of a valid value to its kind; any other byte begins a number.
var kinds = [256]Kind{
	'"': KindString, '{': KindObject, '[': KindArray, 't': KindBool, 'f': KindBool, 'n': KindNull,
}

func kindOf(c byte) Kind {
	if k := kinds[c]; k != 0 {
		return k
	}
	return KindNumber
}

// A Fault is why a JSON text is refused. Lower numbers take precedence: of several faults
// in a text the lowest is reported.
type Fault uint8

const (
	FaultUTF8      Fault = 1 // frame_invalid_utf8
	FaultJSON      Fault = 2 // frame_invalid_json: malformed, or a repeated name
	FaultDepth     Fault = 3 // frame_too_deep
	FaultNotObject Fault = 4 // frame_not_object
	FaultValues    Fault = 5 // record_too_large: more values than MaxValues
)

var faultNames = [...]string{"none", "utf8", "json", "depth", "not_object", "values"}

// String returns the name that abi/testdata uses, such as "utf8".
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// A SyntaxError says where and why a JSON text was refused. It never quotes the text, which
// may be confidential.
type SyntaxError struct {
	Fault  Fault
	Offset int    // of the offending byte; the length of the text if it ends too early
	Reason string // fixed words, such as "repeated member name"
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// A Member is one member of an object.
type Member struct {
	Name  []byte // unescaped; part of the input, or of the scanner when it was escaped
	Value []byte // as spelled, without white space around it; part of the input
	Kind  Kind
}

// A Scanner checks JSON strictly and finds the members of an object in place. It refuses
// malformed texts, anything but white space around the value, a byte order mark, invalid
// UTF-8, half surrogate pairs, NUL even if escaped, repeated member names at any depth, and
// more than MaxDepth open containers. Numbers are checked and stay text.
//
// The zero value is ready to use. A Scanner reuses its scratch space, so that repeated use
// does not allocate. It is not safe for concurrent use.
type Scanner struct {
	// MaxValues bounds the number of values in a text, counting each container. Zero means
	// no limit.
	MaxValues int
	// Lenient accepts escapes of NUL and of half a surrogate pair, as RFC 8259 does.
	// Misspelt is then the first of them in the last text, or nil.
	Lenient  bool
	Misspelt *SyntaxError

	members []Member     // of the outermost object
	levels  []int        // per open container: where its names begin, or inArray
	names   []memberName // of all open objects, innermost last
	table   []uint32     // hash tables of those with many names, innermost last
	text    []byte       // unescaped names
	seed    maphash.Seed
	seeded  bool
	err     *SyntaxError
}

// Object checks that src is exactly one JSON object and returns its members in order. They
// are valid until the next call and while src is unchanged. The error is a *SyntaxError. If
// its only fault is FaultValues, the complete members are returned as well, for checks of
// higher precedence.
func (s *Scanner) Object(src []byte) ([]Member, error) {
	kind, err := s.check(src)
	if err != nil && err.Fault < FaultNotObject {
		return nil, err
	}
	if kind != KindObject {
		return nil, &SyntaxError{FaultNotObject, skipSpace(src, 0), "not an object"}
	}
	if err != nil {
		return s.members, err
	}
	return s.members, nil
}

// Valid checks that src is exactly one JSON value and returns its kind. The error is a
// *SyntaxError. It invalidates members returned by Object.
func (s *Scanner) Valid(src []byte) (Kind, error) {
	kind, err := s.check(src)
	if err != nil {
		return kind, err
	}
	return kind, nil
}

// check scans src and applies the precedence of faults.
func (s *Scanner) check(src []byte) (Kind, *SyntaxError) {
	s.reset()
	kind := s.scan(src)
	if s.err != nil && s.err.Fault == FaultJSON {
		if at := invalidUTF8(src); at >= 0 {
			s.fail(FaultUTF8, at, "invalid UTF-8")
		}
	}
	return kind, s.err
}

// keepScratch bounds the scratch space that is kept between calls, in entries: enough for a
// record with as many values as a host allows.
const keepScratch = 16 << 10

// reset forgets the last text and releases scratch space that it made too large.
func (s *Scanner) reset() {
	s.err, s.Misspelt = nil, nil
	s.members = reuse(s.members)
	s.levels = reuse(s.levels)
	s.names = reuse(s.names)
	s.table = reuse(s.table)
	s.text = reuse(s.text)
}

func reuse[T any](scratch []T) []T {
	if cap(scratch) > keepScratch {
		return nil
	}
	return scratch[:0]
}

// fail records a fault and returns the offset that stops the scan.
func (s *Scanner) fail(f Fault, at int, reason string) int {
	s.err = &SyntaxError{f, at, reason}
	return -1
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(src []byte) int {
	for i := 0; i < len(src); {
		if src[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
