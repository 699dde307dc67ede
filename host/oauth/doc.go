// Package oauth obtains access tokens by OAuth 2.0, so that a connector holds no
// token, no refresh token and no client secret: refreshing and client
// credentials (RFC 6749), device codes (RFC 8628), and authorization codes with
// PKCE on a loopback address (RFC 7636, RFC 8252).
//
// It trusts nothing that a server answers, and goes nowhere but through the
// transport that it is given. No error of it holds what a server said, beyond
// the name of an error that the standards define.
package oauth
