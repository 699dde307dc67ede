package dashboard

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
)

// grantBody is the grant editor: what is asked for, with what is given selected.
type grantBody struct {
	host.Connection
	Requested host.Requested
	Streams   []grantStream
	Hosts     []choice
	MoreHosts string // hosts that the manifest leaves to the owner
	Mounts    []grantMount
	Network   bool // the connector asks for the network
	Ask       bool // the connector asks questions
	MayAsk    bool
	Browse    bool     // the connector asks for a browser
	Browser   []string // what that permits, in words
	MayBrowse bool
	Profile   string
	Others    []otherBinding
	Secrets   []grantSecret
	Settings  []setting
	Steps     []step // steps to its first run
}

// A choice is something that can be given or not.
type choice struct {
	Name string
	On   bool
}

// An otherBinding is a binding without further choices.
type otherBinding struct {
	Name  string
	Words []string
	On    bool
}

type grantStream struct {
	host.RequestedStream
	On           bool
	All          bool // all fields
	Chosen       []choice
	View         string
	Since, Until string
}

type grantMount struct {
	Name, Purpose, Path string
	MayWrite            bool // asked for
	Write               bool // given
}

type grantSecret struct {
	host.Secret
	Origin    string // named by the owner
	Left      bool   // a destination is left to the owner
	Plain     bool   // the connector is to see it in plain text
	Confirmed bool
}

// granted is the scope stored in a grant.
type granted struct {
	Streams []struct {
		Name   string
		Fields []string
		Range  struct{ Since, Until string } `json:"time_range"`
	}
}

// grantUI serves the page where an owner decides what a connection may do.
type grantUI struct {
	*frame
	grants      host.Grants
	connections host.Connections
	directories host.Folders
}

func (u *grantUI) routes() []web.Route {
	one := "/ui/connections/:connectionId"
	return []web.Route{
		page(one+"/grant", u.showGrant),
		action(one+"/grant", u.grant),
		action(one+"/revoke", u.revoke),
		part("/ui/folders", u.folders),
	}
}

func (u *grantUI) showGrant(c *fiber.Ctx) error {
	id, err := connectionOf(c)
	if err != nil {
		return err
	}
	ctx := web.Context(c)
	conn, err := u.connections.Connection(ctx, id)
	if err != nil {
		return err
	}
	asked, err := u.grants.Requested(ctx, id)
	if err != nil {
		return err
	}
	b := grantBody{Connection: conn, Requested: asked, Steps: stepsOf(stepAllow, conn)}
	b.streams()
	b.bindings()
	for _, s := range asked.Secrets {
		b.Secrets = append(b.Secrets, b.secret(s))
	}
	return u.show(c, "grant", content{Title: "Permission for " + nameOf(conn), Nav: navOf(b.Steps), Body: b})
}

func (b *grantBody) streams() {
	var g granted
	everything := b.Grant == nil || len(b.Grant.Scope) == 0 || string(b.Grant.Scope) == "null"
	if !everything {
		_ = json.Unmarshal(b.Grant.Scope, &g) // an unreadable scope gives nothing
	}
	for _, s := range b.Requested.Streams {
		row := grantStream{RequestedStream: s, On: everything, All: true}
		var fields []string
		for _, x := range g.Streams {
			if x.Name == s.Name {
				row.On, row.All, fields = true, x.Fields == nil || len(x.Fields) >= len(s.Fields), x.Fields
				row.Since, row.Until = x.Range.Since, x.Range.Until
			}
		}
		for _, f := range s.Fields {
			row.Chosen = append(row.Chosen, choice{f, row.All || slices.Contains(fields, f)})
		}
		b.Streams = append(b.Streams, row)
	}
}

func (b *grantBody) bindings() {
	approved := []string{}
	if n := b.Bindings.Network; n != nil {
		approved = n.Hosts
	}
	want, network := b.Requested.Bindings["network"]
	b.Network = network
	fresh := b.Grant == nil
	for _, h := range want.Hosts {
		b.Hosts = append(b.Hosts, choice{h, fresh || slices.Contains(approved, h)})
	}
	more := slices.DeleteFunc(slices.Clone(approved), func(h string) bool { return slices.Contains(want.Hosts, h) })
	b.MoreHosts = strings.Join(more, "\n")
	for _, m := range b.Requested.Bindings["filesystem"].Mounts {
		row := grantMount{Name: m.Name, Purpose: m.Purpose, MayWrite: m.Writable}
		if f := b.Bindings.Filesystem; f != nil {
			for _, x := range f.Mounts {
				if x.Name == m.Name {
					row.Path, row.Write = x.HostPath, x.Mode == "rw"
				}
			}
		}
		b.Mounts = append(b.Mounts, row)
	}
	_, b.Ask = b.Requested.Bindings["interactive"]
	if want, ok := b.Requested.Bindings["browser"]; ok {
		b.Browse, b.Browser = true, want.Words
		if have := b.Bindings.Browser; have != nil {
			b.MayBrowse, b.Profile = true, have.Profile
		}
	}
	b.MayAsk = b.Bindings.Interactive == nil || *b.Bindings.Interactive
	for _, name := range slices.Sorted(maps.Keys(b.Requested.Bindings)) {
		if want := b.Requested.Bindings[name]; want.Other {
			b.Others = append(b.Others, otherBinding{name, want.Words, string(b.Bindings.Other[name]) == "true"})
		}
	}
}

func (b *grantBody) secret(s host.Secret) grantSecret {
	row := grantSecret{Secret: s, Plain: s.Delivery == "plain",
		Confirmed: slices.Contains(b.Bindings.PlainAcknowledged, s.Name)}
	row.Left = slices.ContainsFunc(s.Destinations, func(d abi.Destination) bool { return d.Origin == abi.OwnerOrigin })
	if chosen := b.Bindings.Destinations[s.Name]; len(chosen) > 0 {
		row.Origin, row.Left = chosen[0].Origin, true
	}
	return row
}

// grant approves what the form says, bindings first, so that a grant never exceeds them.
func (u *grantUI) grant(c *fiber.Ctx) error {
	id, f, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	ctx := web.Context(c)
	asked, err := u.grants.Requested(ctx, id)
	if err != nil {
		return err
	}
	terms := host.GrantTerms{AccessMode: "continuous", ExpiresAt: f.date("expires"), Narrow: f.on("narrow")}
	if f.on("single") {
		terms.AccessMode = "single_use"
	}
	if terms.Scope, err = f.scope(asked.Streams); err != nil {
		return err
	}
	bindings := f.bindings(asked)
	if err := f.err(); err != nil {
		return err
	}
	if _, err := u.grants.ApproveBindings(ctx, id, bindings); err != nil {
		return placed(err, bindingFields(asked, bindings))
	}
	if _, err := u.grants.GrantConnection(ctx, id, terms); err != nil {
		return placed(err, map[string]string{"expiresAt": "expires"})
	}
	conn, err := u.connections.Connection(ctx, id)
	if err != nil {
		return err
	}
	if conn.LastRun == nil {
		return leave(c, "/ui/connections/"+string(id)+"/start")
	}
	return leave(c, "/ui/connections/"+string(id))
}

// scope returns the scope of the form, or null if everything is given. The host freezes null to
// what exists now, so later versions add nothing to it.
func (f *form) scope(streams []host.RequestedStream) (json.RawMessage, error) {
	type timeRange struct {
		Since string `json:"since,omitempty"`
		Until string `json:"until,omitempty"`
	}
	type one struct {
		Name   string     `json:"name"`
		Fields []string   `json:"fields,omitempty"`
		View   string     `json:"view,omitempty"`
		Range  *timeRange `json:"time_range,omitempty"`
	}
	chosen, all := []one{}, true
	for i, s := range streams {
		at := "." + strconv.Itoa(i)
		if !f.on("stream" + at) {
			all = false
			continue
		}
		x := one{Name: s.Name, View: f.text("view"+at, 256)}
		if x.View == "" && !f.on("allFields"+at) {
			x.Fields = slices.DeleteFunc(slices.Clone(f.all("field"+at)),
				func(name string) bool { return !slices.Contains(s.Fields, name) })
			if len(x.Fields) == 0 {
				f.fail("field"+at, "at least one field, or all of them")
			}
		}
		r := timeRange{f.instant("since" + at), f.instant("until" + at)}
		if r != (timeRange{}) {
			x.Range = &r
		}
		all = all && x.View == "" && x.Fields == nil && x.Range == nil
		chosen = append(chosen, x)
	}
	if len(streams) > 0 && len(chosen) == 0 {
		f.fail("stream.0", "chosen, or another stream: a permission for nothing cannot run")
	}
	if all {
		return nil, f.err()
	}
	return json.Marshal(map[string]any{"streams": chosen})
}

// instant returns the beginning of a day, or "" for an empty field.
func (f *form) instant(name string) string {
	s := f.text(name, 32)
	if s == "" || moment(s) != moment("") {
		return s
	}
	if at := moment(s + "T00:00:00Z"); !at.IsZero() {
		return s + "T00:00:00Z"
	}
	f.fail(name, "a day such as 2026-01-31")
	return ""
}

func (f *form) bindings(asked host.Requested) host.Bindings {
	var b host.Bindings
	if n, ok := asked.Bindings["network"]; ok {
		hosts := []string{}
		for i, h := range n.Hosts {
			if f.on("host." + strconv.Itoa(i)) {
				hosts = append(hosts, h)
			}
		}
		b.Network = &host.NetworkBinding{Hosts: append(hosts, f.lines("moreHosts")...)}
	}
	if fs, ok := asked.Bindings["filesystem"]; ok {
		mounts := []host.Mount{}
		for i, m := range fs.Mounts {
			at := strconv.Itoa(i)
			x := host.Mount{Name: m.Name, HostPath: f.directory("mount." + at), Mode: "ro"}
			if m.Writable && f.on("write."+at) {
				x.Mode = "rw"
			}
			if x.HostPath != "" {
				mounts = append(mounts, x)
			}
		}
		b.Filesystem = &host.FilesystemBinding{Mounts: mounts}
	}
	if _, ok := asked.Bindings["interactive"]; ok {
		on := f.on("interactive")
		b.Interactive = &on
	}
	if _, ok := asked.Bindings["browser"]; ok && f.on("browser") {
		b.Browser = &host.BrowserBinding{Profile: f.text("profile", 64)}
	}
	for name, want := range asked.Bindings {
		if want.Other && f.on("binding."+name) {
			if b.Other == nil {
				b.Other = map[string]json.RawMessage{}
			}
			b.Other[name] = json.RawMessage("true")
		}
	}
	for i, s := range asked.Secrets {
		at := strconv.Itoa(i)
		if f.on("plain."+at) && s.Delivery == "plain" {
			b.PlainAcknowledged = append(b.PlainAcknowledged, s.Name)
		}
		if origin := f.text("origin."+at, 2048); origin != "" {
			if b.Destinations == nil {
				b.Destinations = map[string][]abi.Destination{}
			}
			b.Destinations[s.Name] = destinations(s, origin)
		}
	}
	return b
}

// directory returns a path without the trailing slash that people may type.
func (f *form) directory(name string) string {
	return asDirectory(f.text(name, 4096))
}

func asDirectory(typed string) string {
	if short := strings.TrimRight(typed, "/"); short != "" {
		return short
	}
	return typed
}

// destinations fills in the server that a manifest leaves to the owner.
func destinations(s host.Secret, origin string) []abi.Destination {
	var out []abi.Destination
	for _, d := range s.Destinations {
		if d.Origin == abi.OwnerOrigin || d.Origin == origin {
			d.Origin = origin
			out = append(out, d)
		}
	}
	return out
}

// bindingFields maps members of a request to fields of the form.
func bindingFields(asked host.Requested, b host.Bindings) map[string]string {
	names := map[string]string{"network.hosts": "moreHosts", "browser.profile": "profile"}
	if b.Network != nil {
		for i := range b.Network.Hosts {
			names["network.hosts["+strconv.Itoa(i)+"]"] = "moreHosts"
		}
	}
	if b.Filesystem != nil {
		for i, m := range b.Filesystem.Mounts {
			at := slices.IndexFunc(asked.Bindings["filesystem"].Mounts,
				func(x host.RequestedMount) bool { return x.Name == m.Name })
			names["filesystem.mounts["+strconv.Itoa(i)+"].hostPath"] = "mount." + strconv.Itoa(at)
		}
	}
	for i, s := range asked.Secrets {
		names["destinations."+s.Name] = "origin." + strconv.Itoa(i)
	}
	return names
}

// revoke ends the grant and the run that uses it.
func (u *grantUI) revoke(c *fiber.Ctx) error {
	id, _, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	return reload(c, u.grants.RevokeGrant(web.Context(c), id, ""))
}

// folders lists the subdirectories of a directory, for a field of the form.
func (u *grantUI) folders(c *fiber.Ctx) error {
	q := web.QueryOf(c)
	at := asDirectory(q.Text("at", 4096))
	if err := q.Err(); err != nil {
		return err
	}
	f, err := u.directories.Folder(web.Context(c), at)
	var refusal *host.Refusal
	if errors.As(err, &refusal) { // the typed path cannot be listed; list the home directory
		f, err = u.directories.Folder(web.Context(c), "")
	}
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return u.write(c, "grant", "folders", f)
}
