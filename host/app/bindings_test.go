package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// What somebody could try to have approved.
func TestHostileBindings(t *testing.T) {
	s, h := connected(t)
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	hosts := func(h ...string) host.Bindings {
		return host.Bindings{Network: &host.NetworkBinding{Hosts: h}}
	}
	mount := func(name, path, mode string) host.Bindings {
		return host.Bindings{Filesystem: &host.FilesystemBinding{Mounts: []host.Mount{{Name: name,
			HostPath: path, Mode: mode}}}}
	}
	to := func(field, origin, prefix string, placements ...string) host.Bindings {
		return host.Bindings{Destinations: map[string][]abi.Destination{field: {{Origin: origin, PathPrefix: prefix,
			Placements: placements}}}}
	}
	yes := true
	const no, wrong = "binding_not_requested", "validation_error"
	for name, c := range map[string]struct {
		q          host.Bindings
		code, rule string
	}{
		"host":                {hosts("evil.example"), no, no},
		"host beside":         {hosts("api.mail.example", marker+".example"), no, no},
		"port":                {hosts("api.mail.example:8443"), no, no},
		"scheme":              {hosts("http://api.mail.example"), no, no},
		"wildcard of a host":  {hosts("*.mail.example"), no, no},
		"everything":          {hosts("*"), wrong, "host_invalid"},
		"every address":       {hosts("0.0.0.0/0"), wrong, "host_invalid"},
		"url":                 {hosts("https://api.mail.example/" + marker), wrong, "host_invalid"},
		"private neighbour":   {hosts("192.168.1.8"), no, no},
		"address spelled so":  {hosts("0xc0a80107"), wrong, "host_invalid"},
		"metadata":            {hosts("169.254.169.254"), no, no},
		"too many":            {hosts(slices.Repeat([]string{"api.mail.example"}, 101)...), wrong, "too_many"},
		"unknown directory":   {mount(marker, dir, "ro"), no, no},
		"write":               {mount("in", dir, "rw"), no, no},
		"mode":                {mount("in", dir, marker), wrong, "value_unknown"},
		"relative":            {mount("in", marker, ""), wrong, "path"},
		"empty":               {mount("in", "", ""), wrong, "path"},
		"dots":                {mount("in", dir+"/../"+marker, ""), wrong, "path"},
		"end in a slash":      {mount("in", dir+"/", ""), wrong, "path"},
		"nul":                 {mount("in", dir+"\x00"+marker, ""), wrong, "path"},
		"missing":             {mount("in", filepath.Join(dir, marker), ""), wrong, "directory_missing"},
		"root":                {mount("in", "/", ""), wrong, "directory_refused"},
		"proc":                {mount("in", "/proc/self", ""), wrong, "directory_refused"},
		"link to etc":         {mount("in", link, ""), wrong, "directory_refused"},
		"data directory":      {mount("in", h.DataDir, ""), wrong, "directory_refused"},
		"vault":               {mount("out", filepath.Join(h.DataDir, "modules"), "rw"), wrong, "directory_refused"},
		"another destination": {to("token", "https://evil.example", "/v2/", "header:authorization"), no, no},
		"another path":        {to("token", "https://api.mail.example", "/", "header:authorization"), no, no},
		"another placement":   {to("token", "https://api.mail.example", "/v2/", "body"), no, no},
		"in the clear": {to("token", "http://api.mail.example", "/v2/", "header:authorization"),
			wrong, "origin_invalid"},
		"unknown secret": {to(marker, "https://api.mail.example", "/v2/"), no, no},
		"plain":          {host.Bindings{PlainAcknowledged: []string{"token"}}, no, no},
		"plain unknown":  {host.Bindings{PlainAcknowledged: []string{marker}}, no, no},
	} {
		_, err := s.ApproveBindings(host.As(t.Context(), somebody), "mail", c.q)
		if refused(t, err, c.code, c.rule, marker); t.Failed() {
			t.Fatal(name, err)
		}
	}
	if c := stored(t, h, "mail"); !cmp.Equal(c.Approved, store.Approved{}) {
		t.Errorf("approved: %+v", c.Approved)
	}
	upload(t, s, manifestOf("mute", "1", "", ""))
	if _, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mute"}); err != nil {
		t.Fatal(err)
	}
	_, err := s.ApproveBindings(host.As(t.Context(), somebody), "mute", host.Bindings{Interactive: &yes})
	refused(t, err, no, no)
	_, err = s.ApproveBindings(host.As(t.Context(), somebody), "mute", hosts("api.mail.example"))
	refused(t, err, no, no)
}
