package redact

import "testing"

// TestOTP: a number is hidden as a code where a word for codes stands beside it, and
// only there.
func TestOTP(t *testing.T) {
	for text, want := range map[string]string{
		"More than 50000 files in 120000 events": "More than 50000 files in 120000 events",
		"100000 of 120000 events were stored":    "100000 of 120000 events were stored",
		"exit code 123456, zip code 10115":       "exit code 123456, zip code 10115",
		"Enter the code. 120000 events so far.":  "Enter the code. 120000 events so far.",
		"decode 123456, encoded 654321":          "decode 123456, encoded 654321",
		"code 1234567890123":                     "code 1234567890123",
		"Your code is 483920.":                   "Your code is [REDACTED_OTP].",
		"483920 is your login code":              "[REDACTED_OTP] is your login code",
		"G-483920 is your Google code":           "G-[REDACTED_OTP] is your Google code",
		"OTP 4839 or 48392017":                   "OTP [REDACTED_OTP] or [REDACTED_OTP]",
		"use code 483 920 or 483-920":            "use code [REDACTED_OTP] or [REDACTED_OTP]",
		"Ihre mTAN lautet 483920":                "Ihre mTAN lautet [REDACTED_OTP]",
		"Tu código: 483920":                      "Tu código: [REDACTED_OTP]",
		"Ваш код 483920":                         "Ваш код [REDACTED_OTP]",
		"您的验证码483920":                            "您的验证码[REDACTED_OTP]",
		"code 483920 483921":                     "code [REDACTED_OTP] [REDACTED_OTP]",
	} {
		if got := otp(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestShortAnswer: an answer of the owner is hidden as a word wherever it is, without
// a word for codes, and not within a longer number.
func TestShortAnswer(t *testing.T) {
	c := &Canary{}
	c.Protect("483920")
	c.Protect("4711") // a stored secret, which is found as a whole text only
	c.ProtectWord("483920")
	for text, want := range map[string]string{
		"483920":                            "[REDACTED_SECRET]",
		"sent 483920, then 483920":          "sent [REDACTED_SECRET], then [REDACTED_SECRET]",
		"1483920 and 4839201 and a483920":   "1483920 and 4839201 and a483920",
		"id=483920":                         "id=[REDACTED_SECRET]",
		"page 4711":                         "page 4711",
		"4711":                              "[REDACTED_SECRET]",
		"483920483920":                      "483920483920",
		"120000 events, none of them 48392": "120000 events, none of them 48392",
	} {
		if got := c.Text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
