package app

import "github.com/sluicehost/sluice/host/schedule"

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
func Automatic(s *Service) schedule.Starter { return automatic{s.schedules} }

// UnpackOpener is how the process that unpacks backups opens a store.
var UnpackOpener = unpackOpener
