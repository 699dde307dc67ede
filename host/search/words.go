package search

import (
	"iter"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is how many characters of a word are significant.
const maxWord = 64

// A word is a unit of the index: letters and digits, folded so that case, accents and alternative spellings of a letter
// do not matter. In scripts without spaces it is a pair of adjacent characters, so that any part of a sentence can be
// found.
type word struct {
	text       string
	start, end int // position in the text, in bytes
	dense      bool
	last       bool // if dense: the last pair of its run
}

// canonical returns a text in the form that words expects, with composed letters.
func canonical(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
	return norm.NFC.String(text)
}

// words returns the words of a canonical text, in order. A dense run of one character is a word of one character.
func words(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		var folded []byte
		for at := 0; at < len(text); {
			r, size := utf8.DecodeRuneInString(text[at:])
			switch {
			case dense(r):
				next, on := pairs(text, at, yield)
				if !on {
					return
				}
				at = next
			case letter(r):
				start, count := at, 0
				folded = folded[:0]
				for at < len(text) {
					r, size = utf8.DecodeRuneInString(text[at:])
					if !letter(r) && !unicode.Is(unicode.M, r) || dense(r) {
						break
					}
					if count++; count <= maxWord {
						folded = appendFold(folded, r)
					}
					at += size
				}
				if len(folded) > 0 && !yield(word{text: string(folded), start: start, end: at}) {
					return
				}
			default:
				at += size
			}
		}
	}
}

// pairs yields a dense run as pairs and returns its end.
func pairs(text string, at int, yield func(word) bool) (end int, on bool) {
	before, was := -1, ""
	for n := 0; ; n++ {
		r, size := utf8.DecodeRuneInString(text[at:])
		if at == len(text) || !dense(r) {
			if n == 1 {
				return at, yield(word{text: was, start: before, end: at, dense: true, last: true})
			}
			return at, true
		}
		one := string(appendFold(nil, r))
		if n > 0 {
			next, _ := utf8.DecodeRuneInString(text[at+size:])
			if !yield(word{text: was + one, start: before, end: at + size, dense: true,
				last: at+size == len(text) || !dense(next)}) {
				return at, false
			}
		}
		before, was = at, one
		at += size
	}
}

func letter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// dense reports whether a character belongs to a script that is written without spaces, or in which suffixes are
// attached to words.
func dense(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	for _, x := range [...][2]rune{
		{0x0e01, 0x0e3a}, {0x0e40, 0x0e4e}, {0x0e81, 0x0ece}, // Thai, Lao
		{0x1000, 0x1049}, {0x1780, 0x17d3}, // Burmese, Khmer
		{0x3005, 0x3007}, {0x3041, 0x309f}, {0x30a1, 0x30fa}, {0x30fc, 0x30ff}, {0x31f0, 0x31ff}, // kana
		{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x3ffff}, // Han
		{0xac00, 0xd7a3}, {0xff66, 0xff9f}, // Hangul, narrow kana
	} {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	return false
}

// appendFold appends the folded form of a letter or mark, which is empty for an accent.
func appendFold(to []byte, r rune) []byte {
	switch {
	case 'A' <= r && r <= 'Z':
		return append(to, byte(r)+'a'-'A')
	case r < utf8.RuneSelf:
		return append(to, byte(r))
	case r < foldsTo:
		return append(to, folds()[r]...)
	case r >= 0xf900:
		return norm.NFKC.AppendString(to, string(unicode.ToLower(r)))
	}
	return utf8.AppendRune(to, unicode.ToLower(r))
}

// folds returns the folded forms of letters below foldsTo. It is computed on first use, because most processes do not
// need it.
const foldsTo = 0x2000

var folds = sync.OnceValue(func() *[foldsTo]string {
	var out [foldsTo]string
	for r := rune(utf8.RuneSelf); r < foldsTo; r++ {
		out[r] = foldLetter(r)
	}
	return &out
})

// foldLetter removes case and accents. Marks that are vowels in their script stay.
func foldLetter(r rune) string {
	if same, ok := spelled[unicode.ToLower(r)]; ok {
		return same
	}
	var b strings.Builder
	for _, d := range norm.NFKD.String(string(unicode.ToLower(r))) {
		switch {
		case unicode.Is(unicode.Mn, d) && (d < 0x0900 || unicode.Is(unicode.Inherited, d)):
		case letter(d) || unicode.Is(unicode.M, d):
			b.WriteRune(unicode.ToLower(d))
		}
	}
	return b.String()
}

// spelled maps letters to those that are commonly typed instead. The Arabic ones correspond to accented letters in
// Latin; the tatweel is not a letter.
var spelled = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'þ': "th", 'ħ': "h", 'ı': "i",
	'ŋ': "n", 'ς': "σ", 'ة': "ه", 'ى': "ي", 'ـ': "",
}
