package app

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

// ServiceOf is a service with nothing but a host.
func ServiceOf(h *Host) *Service {
	return newService(h, ServiceOptions{})
}

// SetAttention says who keeps the marks of a service's connections.
func SetAttention(s *Service, a attention) {
	s.state.attention, s.connections.overviews.attention = a, a
}

// SigningSecretsIn are the signing secrets of a data directory, "" for memory.
func SigningSecretsIn(dir string) *SigningSecrets {
	return (&secretStore{&directory{DataDir: dir}}).SigningSecrets()
}

// Automatic is how schedules of a service start runs.
func Automatic(s *Service) schedule.Starter { return scheduleRunner{s.schedules} }

// UnpackOpener is how the process that unpacks backups opens a store.
var UnpackOpener = unpackOpener

// NotReady lists the codes that would refuse a start of a connection now, in the order of the
// checks.
func (h *Host) NotReady(ctx context.Context, id store.ConnectionID) ([]string, error) {
	c, err := h.connections.permanent(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := h.snapshots.take(ctx)
	if err != nil {
		return nil, err
	}
	return v.notReady(ctx, c), nil
}

// Narrow takes back hosts and plain secrets of a connection.
func (h *Host) Narrow(ctx context.Context, id store.ConnectionID, hosts, plain []string) error {
	_, err := h.revoke(ctx, id, func(c *store.Connection) error {
		c.Approved.Hosts = slices.DeleteFunc(c.Approved.Hosts, func(x string) bool { return slices.Contains(hosts, x) })
		c.Approved.Plain = slices.DeleteFunc(c.Approved.Plain, func(x string) bool { return slices.Contains(plain, x) })
		return nil
	})
	return err
}

// PlaceOf is the place of a host among all for a connection that requires labels, and Takers
// are whom its start is passed on to.
func PlaceOf(all []store.Member, epoch string, labels []string, draw string) int {
	return placeOf(all, epoch, fitting(store.Connection{Labels: labels}), draw)
}

func Takers(all []store.Member, self string, labels []string) []store.Member {
	return takers(all, self, store.Connection{Labels: labels})
}

// RehearseAs is Rehearse of guests that are changed.
func RehearseAs(ctx context.Context, h *Host, l *Loaded, recording []byte, answers map[string]host.Answer,
	wrap func(run.Guest) run.Guest) (*Rehearsal, error) {
	return h.rehearse(ctx, l, recording, answers, time.Hour, wrap)
}

// SetFault has do called between the steps of a backup, a restore or a copy.
func SetFault(do func(point string) error) { fault = do }
