// Package redact keeps secrets out of the timeline, log, result and errors of a run. A [Canary] knows the
// protected values of one run and finds them in any encoding that a guest may have chosen. The profiles (Log,
// Gap, Assistance, Progress) remove what looks like a secret although nobody protected it; they are applied
// after the canary.
//
// The package does no I/O. Its input is hostile, and a text grows by no more than the markers that replace what
// was removed.
package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
)

// keyWords are the names that a secret follows, as in "token: …".
const keyWords = `authorization|bearer|token|password|passwd|cookie|secret|otp|api_key|api-key|apikey`

var (
	keyedSecret = lazily(`(?i)\b(` + keyWords + `)\b([ \t]*)[:=][ \t]*["']?[^"',\s}]+`)
	codeWord    = lazily(`(?i)(?:^|[^\pL\pN_])((?:(?:` + otherCodes + `)[ -]?)?(?:` + codeWords +
		`))(?:$|[^\pL])|(` + joinedWords + `)`)
	noCodeWord = lazily(`(?i)^(?:` + otherCodes + `)`)
	digits     = lazily(`[0-9]{4,8}|[0-9]{3}[ -][0-9]{3,4}`)
	longWord   = lazily(`[A-Za-z0-9_-]{24,}`)
	pemBlock   = lazily(`(?s)-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|$)`)
	userInfo   = lazily(`(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@`)
	anyURL     = lazily(`(?i)\b(?:https?|wss?)://[^\s"'<>]+`)
	driverName = lazily(
		`(?i)\b((?:cdp|playwright|webrtc|neko)[_-]?(?:url|uri|endpoint|token|secret))\b[ \t]*[:=][ \t]*["']?[^"',\s}]+`)
)

// Keyed replaces what follows a word in keyWords and a colon or equals sign.
func Keyed(s string) string { return keyedSecret().ReplaceAllString(s, "$1=[REDACTED]") }

// codeWords are the words for one-time codes, joinedWords those of languages that write without spaces. A word
// of otherCodes in front makes it another kind of code.
const (
	codeWords = `codes?|passcodes?|otp|totp|hotp|m?tan|pin|2fa|mfa|one[- ]time password|kode|kod|koodi|einmalcode|einmalpasswort|sicherheitscode|` +
		`bestätigungscode|código|codigo|clave|codice|codul|wachtwoord|код|кода|кодом`
	joinedWords = `验证码|驗證碼|認証コード|確認コード|인증번호|인증 번호`
	otherCodes  = `error|exit|status|return|response|result|zip|postal|area|country|source`
)

// nearCode is the largest distance between a code and a word for codes, in bytes.
const nearCode = 40

// otp replaces one-time codes: digits near a word for codes, on the same line and in the same sentence. A number
// alone, as in "123456 events", stays. Answers of the owner are found by the canary wherever they are.
func otp(s string) string {
	words := wordsForCodes(s)
	if len(words) == 0 {
		return s
	}
	var out strings.Builder
	from := 0
	for _, d := range digits().FindAllStringIndex(s, -1) {
		if isInWord(s, d[0], d[1]) || !slices.ContainsFunc(words, func(w []int) bool { return beside(s, w, d) }) {
			continue
		}
		out.WriteString(s[from:d[0]] + "[REDACTED_OTP]")
		from = d[1]
	}
	return out.String() + s[from:]
}

// wordsForCodes returns the positions of words for codes in a text, leaving out error codes and the like.
func wordsForCodes(s string) (words [][]int) {
	for _, m := range codeWord().FindAllStringSubmatchIndex(s, -1) {
		word := m[2:4]
		if word[0] < 0 {
			word = m[4:6]
		}
		if !noCodeWord().MatchString(s[word[0]:word[1]]) {
			words = append(words, word)
		}
	}
	return words
}

// beside reports whether digits are near a word for codes, with no end of a sentence or line between.
func beside(s string, word, d []int) bool {
	between := ""
	switch {
	case word[1] <= d[0]:
		between = s[word[1]:d[0]]
	case d[1] <= word[0]:
		between = s[d[1]:word[0]]
	}
	return len(between) <= nearCode && !strings.ContainsAny(between, "\n\r;") && !strings.Contains(between, ". ") &&
		!strings.Contains(between, "! ")
}

// isInWord reports whether a letter, digit or underscore adjoins s[from:to].
func isInWord(s string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	after, _ := utf8.DecodeRuneInString(s[to:])
	return isWord(before) || isWord(after)
}

// URLs replaces web addresses.
func URLs(s string) string { return anyURL().ReplaceAllString(s, "[REDACTED_URL]") }

func isWord(c rune) bool {
	return c == '_' || c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c))
}

// Log redacts log lines and error messages. It keeps line breaks and does not shorten the text.
func Log(s string) string {
	s = userInfo().ReplaceAllString(s, "$1")
	s = pemBlock().ReplaceAllString(s, "[REDACTED_PEM]")
	s = otp(Keyed(s))
	return longWord().ReplaceAllStringFunc(s, func(w string) string {
		if strings.HasPrefix(w, "REDACTED") {
			return w
		}
		return "[REDACTED]"
	})
}

// Gap redacts short texts in events and results: cleaned for display and cut to max bytes.
func Gap(s string, max int) string { return abi.Cut(otp(Keyed(abi.Clean(s))), max) }

// Assistance redacts texts that are shown to an owner in a question, including URLs and what gives access to a
// browser driver, and cuts them to max bytes.
func Assistance(s string, max int) string {
	s = otp(Keyed(abi.Clean(s)))
	s = URLs(s)
	s = driverName().ReplaceAllString(s, "$1=[REDACTED]")
	return abi.Cut(s, max)
}

// Progress redacts progress messages and cuts them to 500 bytes.
func Progress(s string) string {
	return abi.Cut(URLs(Keyed(abi.Clean(s))), 500)
}

// secretNames are the parts of a field's name that mark it as secret.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "bearer", "cookie", "credential",
	"otp", "api_key", "apikey", "private_key", "qr",
}

// SecretName reports whether the name of a field suggests a secret.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(name, s) })
}

// lazily compiles an expression when it is first used: it would cost every start of the program and of a worker.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
