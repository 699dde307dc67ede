package site

import (
	"crypto/rand"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"sync"
)

//go:embed pages
var files embed.FS

var pages = template.Must(template.ParseFS(files, "pages/*.html"))

// Options are the one customer of the bank.
type Options struct {
	User, Password, Code string
	// Greeting is shown to users who are signed in.
	Greeting string
}

// A Truth is what the bank was really asked to do.
type Truth struct {
	Logins   int `json:"logins"`   // right names and passwords
	Refused  int `json:"refused"`  // wrong ones
	Codes    int `json:"codes"`    // right codes
	Prepared int `json:"prepared"` // statements that were ordered; each costs
	Pages    int `json:"pages"`    // of statements that were fetched
	Printed  int `json:"printed"`  // statements that were fetched as PDF
}

// A Site is the bank, an http.Handler. It is safe for concurrent use.
type Site struct {
	o   Options
	mux *http.ServeMux

	mu       sync.Mutex // guards what follows
	truth    Truth
	sessions map[string]*session
}

// A session is one signed-in browser.
type session struct {
	known    bool // the code was right, too
	months   int
	currency string
	prepared bool
}

// New opens a bank.
func New(o Options) *Site {
	if o.Greeting == "" {
		o.Greeting = "Welcome back, " + o.User
	}
	s := &Site{o: o, mux: http.NewServeMux(), sessions: map[string]*session{}}
	s.mux.Handle("GET /static/", http.StripPrefix("/static/", http.HandlerFunc(asset)))
	s.mux.HandleFunc("GET /{$}", s.home)
	s.mux.HandleFunc("GET /login", s.show("login.html"))
	s.mux.HandleFunc("POST /login", s.login)
	s.mux.HandleFunc("GET /code", s.show("code.html"))
	s.mux.HandleFunc("POST /code", s.code)
	s.mux.HandleFunc("GET /accounts", s.signedIn(s.accounts))
	s.mux.HandleFunc("GET /statement", s.signedIn(s.statement))
	s.mux.HandleFunc("POST /statement/prepare", s.signedIn(s.prepare))
	s.mux.HandleFunc("GET /statement/rows", s.signedIn(s.rows))
	s.mux.HandleFunc("GET /statement/document", s.signedIn(s.document))
	s.mux.HandleFunc("POST /logout", s.logout)
	s.mux.HandleFunc("GET /truth", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.Truth()) })
	return s
}

// Truth is what happened so far.
func (s *Site) Truth() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth
}

// Forget ends all sessions, as a bank does over night.
func (s *Site) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'self'")
	s.mux.ServeHTTP(w, r)
}

func asset(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, files, "pages/"+r.URL.Path)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the browser has gone
}

const cookie = "portal"

// of returns the session of a request, or nil. The caller holds the lock.
func (s *Site) of(r *http.Request) *session {
	c, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	return s.sessions[c.Value]
}

// begin gives the browser a session that lasts a month.
func (s *Site) begin(w http.ResponseWriter) {
	id := rand.Text()
	s.sessions[id] = &session{months: 3, currency: "CHF"}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: id, Path: "/", HttpOnly: true, MaxAge: 30 * 86400, SameSite: http.SameSiteLaxMode}) // #nosec G124 -- the demonstration is served on plain loopback
}

// view is the data of a page.
type view struct {
	Greeting, Trouble string
	Accounts          []account
}

func render(w http.ResponseWriter, page string, v view) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pages.ExecuteTemplate(w, page, v) // the browser has gone
}

func (s *Site) show(page string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		trouble := ""
		if r.URL.Query().Has("wrong") {
			trouble = "That was not right. Please try again."
		}
		render(w, page, view{Trouble: trouble})
	}
}

// signedIn redirects users without a session to the login.
func (s *Site) signedIn(next func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own := s.of(r); own != nil && own.known {
			next(w, r, own)
			return
		}
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	}
}

func (s *Site) home(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/accounts", http.StatusSeeOther)
}
