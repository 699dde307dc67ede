package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A pool lends a limited number of connections.
type pool struct {
	config *pgx.ConnConfig
	slots  chan struct{} // one for each lent connection
	idle   chan *conn

	mu   sync.Mutex // guards lent
	lent map[*conn]bool
}

// A conn is a connection with its prepared statements for tables of records.
type conn struct {
	*pgx.Conn
	name    string         // random
	begun   int64          // number of writing transactions
	ingests map[int64]bool // by the number of the table
}

// manyIngests bounds the ingests of a connection.
const manyIngests = 200

func newPool(config *pgx.ConnConfig, size int) *pool {
	return &pool{config: config, slots: make(chan struct{}, size), idle: make(chan *conn, size),
		lent: make(map[*conn]bool)}
}

// get waits until a connection may be lent and makes one if none is idle.
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

// cut breaks the lent connections, so that everyone who waits for an answer gets an error.
func (p *pool) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.lent {
		_ = c.PgConn().Conn().Close() // unlike c.Close, it may be called concurrently with other uses
	}
}

// put returns a connection that was used with ctx. If it is in a transaction or has ended, it is discarded.
func (p *pool) put(ctx context.Context, c *conn) {
	p.mu.Lock()
	delete(p.lent, c)
	p.mu.Unlock()
	if c.IsClosed() {
		if !errors.Is(ctx.Err(), context.Canceled) { // cancelling ends only this connection
			p.drain() // the others are probably broken, too
		}
	} else if c.PgConn().TxStatus() != 'I' {
		end(c.Conn)
	} else {
		p.idle <- c // never blocks: its capacity is that of slots
	}
	<-p.slots
}

// drain closes the idle connections.
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

// end closes a connection and waits at most a second.
func end(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // in any case the connection is gone
}
