package web

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is a pair of PEM files that are renewed from time to time. It is reloaded at the
// first handshake after the files changed; if the new pair does not match, as between the two
// writes, the old one stays in use. It is safe for concurrent use.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu    sync.Mutex // guards all below
	pair  *tls.Certificate
	stamp [2]time.Time // modification times of the files
}

func newCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	return c, c.load()
}

// load reads the files if they changed. The caller holds mu or has exclusive access.
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
	c.stamp = stamp // a pair that does not match is not read repeatedly
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("load certificate: %w", err)
	}
	c.pair = &pair
	return nil
}

// get implements tls.Config.GetCertificate.
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
