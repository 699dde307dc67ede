package app

import "github.com/sluicehost/sluice/host/schedule"

// ServiceOf is a service with nothing but a host.
func ServiceOf(h *Host) *Service {
	s := &Service{host: h}
	s.schedules = s.scheduler(ServiceOptions{})
	return s
}

// Automatic is how schedules of a service start runs.
func Automatic(s *Service) schedule.Starter { return automatic{s} }

// UnpackOpener is how the process that unpacks backups opens a store.
var UnpackOpener = unpackOpener
