package site

import (
	"crypto/subtle"
	"net/http"
)

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (s *Site) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !same(r.PostFormValue("user"), s.o.User) || !same(r.PostFormValue("password"), s.o.Password) {
		s.truth.Refused++
		http.Redirect(w, r, "/login?wrong", http.StatusSeeOther)
		return
	}
	s.truth.Logins++
	s.begin(w)
	http.Redirect(w, r, "/code", http.StatusSeeOther)
}

func (s *Site) code(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of(r)
	if own == nil {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	if !same(r.PostFormValue("code"), s.o.Code) {
		http.Redirect(w, r, "/code?wrong", http.StatusSeeOther)
		return
	}
	s.truth.Codes++
	own.known = true
	http.Redirect(w, r, "/accounts", http.StatusSeeOther)
}

func (s *Site) logout(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, err := r.Cookie(cookie); err == nil {
		delete(s.sessions, c.Value)
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
