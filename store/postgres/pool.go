package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A pool lends connections, so many at most.
type pool struct {
	config *pgx.ConnConfig
	slots  chan struct{} // one for each connection that is lent
	idle   chan *conn

	mu   sync.Mutex // guards lent
	lent map[*conn]bool
}

// A conn is a connection and which statements for tables of records it has prepared.
type conn struct {
	*pgx.Conn
	name    string         // random
	begun   int64          // transactions that write
	ingests map[int64]bool // by the number of the table
}

// manyIngests is how many of them a connection keeps.
const manyIngests = 200

func newPool(config *pgx.ConnConfig, size int) *pool {
	return &pool{config: config, slots: make(chan struct{}, size), idle: make(chan *conn, size), lent: make(map[*conn]bool)}
}

// get waits for a connection, and makes one where none is idle.
func (p *pool) get(ctx context.Context) (*conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var c *conn
	select {
	case c = <-p.idle:
	default:
		made, err := pgx.ConnectConfig(ctx, p.config.Copy())
		if err != nil {
			<-p.slots
			return nil, err
		}
		c = &conn{Conn: made, name: rand.Text()}
	}
	p.mu.Lock()
	p.lent[c] = true
	p.mu.Unlock()
	return c, nil
}

// cut breaks the connections that are lent: whoever waits for an answer on one gets an error.
func (p *pool) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.lent {
		_ = c.PgConn().Conn().Close() // this may be called beside its user, unlike c.Close
	}
}

// put takes a connection back from who used it with ctx. One that is in a transaction, or has
// ended, is thrown away.
func (p *pool) put(ctx context.Context, c *conn) {
	p.mu.Lock()
	delete(p.lent, c)
	p.mu.Unlock()
	if c.IsClosed() {
		if !errors.Is(ctx.Err(), context.Canceled) { // which ends that connection alone
			p.drain() // the others are most likely of the same fate
		}
	} else if c.PgConn().TxStatus() != 'I' {
		end(c.Conn)
	} else {
		p.idle <- c // has room for all
	}
	<-p.slots
}

// drain ends the idle connections.
func (p *pool) drain() {
	for {
		select {
		case c := <-p.idle:
			end(c.Conn)
		default:
			return
		}
	}
}

// end closes a connection without waiting long.
func end(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // whatever it says, the connection is no more
}
