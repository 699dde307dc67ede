package chromium

import (
	"net/http"
	"time"
)

// answerTime is how long a browser may take to read such an answer.
const answerTime = 10 * time.Second

// The answers of the proxy itself. They are static, since a page of plain http
// shows them under the origin it asked for, and nothing runs in them (B251).
const (
	blockedPage     = "<!doctype html><title>Blocked</title><p>This address is not in the connection's network policy."
	unreachablePage = "<!doctype html><title>Unreachable</title><p>The server could not be reached."
	malformedPage   = "<!doctype html><title>Refused</title><p>This is not a request for a proxy."
)

// mark is the header that tells a denial from a server's 403. Answers of servers
// are stripped of it.
const mark = "Sluice-Egress"

// blocked denies a request.
func blocked(w http.ResponseWriter) {
	w.Header().Set(mark, "denied")
	answer(w, http.StatusForbidden, blockedPage)
}

// unreachable is for servers that do not answer, and for those that answer what
// no proxy passes on.
func unreachable(w http.ResponseWriter) { answer(w, http.StatusBadGateway, unreachablePage) }

// malformed ends the connection: what else is in it cannot be trusted to be a
// request.
func malformed(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	answer(w, http.StatusBadRequest, malformedPage)
}

func answer(w http.ResponseWriter, status int, page string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // the write says if it is not to be
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page)) // to a browser that may be gone
}
