package web

import "github.com/gofiber/fiber/v2"

// ContentSecurityPolicy of everything that is answered. The one policy of trusted
// types has the name sluice; default is for the page library, which knows no
// names.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types sluice default"

// headers sets what every answer carries. No CORS header is among them, and there
// is none anywhere.
func headers(c *fiber.Ctx, r *request) {
	h := &c.Response().Header
	h.Set(fiber.HeaderXRequestID, r.id)
	h.Set(fiber.HeaderContentSecurityPolicy, ContentSecurityPolicy)
	h.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	h.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(fiber.HeaderCacheControl, "no-store")
	if r.https {
		h.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
}
