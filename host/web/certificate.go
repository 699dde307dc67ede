package web

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is a pair of PEM files that somebody renews from time to time. The
// pair in use is replaced at the first handshake after the files changed; one that
// does not fit, as in the moment between the two, leaves the old one in use. Its
// methods may be called from several goroutines.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu    sync.Mutex // guards all below
	pair  *tls.Certificate
	stamp [2]time.Time // of the files
}

func newCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	return c, c.load()
}

// load reads the files if they changed. mu is held, or nobody else has c.
func (c *certificate) load() error {
	var stamp [2]time.Time
	for i, path := range []string{c.cert, c.key} {
		fi, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("load certificate: %w", err)
		}
		stamp[i] = fi.ModTime()
	}
	if stamp == c.stamp {
		return nil
	}
	c.stamp = stamp // one that does not fit is not read again and again
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("load certificate: %w", err)
	}
	c.pair = &pair
	return nil
}

// get is for tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, pair := c.stamp, c.pair
	switch err := c.load(); {
	case err != nil && c.stamp != before:
		c.log.Warn("the certificate in use stays", "err", err)
	case c.pair != pair:
		c.log.Info("a new certificate is in use", "file", c.cert)
	}
	return c.pair, nil
}
