package run

import (
	"regexp"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// The redaction profiles of §20.4. Each also cleans the text for display (S50)
// and cuts it. The canary has run before.
const keyWords = `authorization|bearer|token|password|passwd|cookie|secret|otp|api_key|api-key|apikey`

var (
	keyedSecret = regexp.MustCompile(`(?i)\b(` + keyWords + `)\b([ \t]*)[:=][ \t]*["']?[^"',\s}]+`)
	sixDigits   = regexp.MustCompile(`(^|[^A-Za-z0-9_])[0-9]{6}($|[^A-Za-z0-9_])`)
	longWord    = regexp.MustCompile(`[A-Za-z0-9_-]{24,}`)
	pemBlock    = regexp.MustCompile(`(?s)-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|$)`)
	userInfo    = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@`)
	anyURL      = regexp.MustCompile(`(?i)\b(?:https?|wss?)://[^\s"'<>]+`)
	driverName  = regexp.MustCompile(`(?i)\b((?:cdp|playwright|webrtc|neko)[_-]?(?:url|uri|endpoint|token|secret))\b[ \t]*[:=][ \t]*["']?[^"',\s}]+`)
)

func keyed(s string) string { return keyedSecret.ReplaceAllString(s, "$1=[REDACTED]") }

// otp replaces six-digit words; twice, since neighbours share a border.
func otp(s string) string {
	const with = "${1}[REDACTED_OTP]${2}"
	return sixDigits.ReplaceAllString(sixDigits.ReplaceAllString(s, with), with)
}

// redactLog is profile log.
func redactLog(s string) string {
	s = userInfo.ReplaceAllString(s, "$1")
	s = pemBlock.ReplaceAllString(s, "[REDACTED_PEM]")
	s = otp(keyed(s))
	return longWord.ReplaceAllStringFunc(s, func(w string) string {
		if strings.HasPrefix(w, "REDACTED") {
			return w
		}
		return "[REDACTED]"
	})
}

// redactGap is profile gap.
func redactGap(s string, max int) string { return abi.Cut(otp(keyed(abi.Clean(s))), max) }

// redactAssistance is profile assistance.
func redactAssistance(s string, max int) string {
	s = otp(keyed(abi.Clean(s)))
	s = anyURL.ReplaceAllString(s, "[REDACTED_URL]")
	s = driverName.ReplaceAllString(s, "$1=[REDACTED]")
	return abi.Cut(s, max)
}

// redactProgress is profile progress.
func redactProgress(s string) string {
	return abi.Cut(anyURL.ReplaceAllString(keyed(abi.Clean(s)), "[REDACTED_URL]"), 500)
}
