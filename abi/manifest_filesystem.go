package abi

import "slices"

// A MountRequest asks for a directory.
type MountRequest struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable,omitempty"`
	Purpose  string `json:"purpose,omitempty"`
}

// filesystem reads the members of the binding.
func (r *manifestReader) filesystem(a at, b *Binding) { b.Mounts = r.mounts(a.member("mounts")) }

func (r *manifestReader) mounts(a at) []MountRequest {
	var out []MountRequest
	r.list(a, 16, func(i at) {
		if !r.object(i, true) {
			return
		}
		w := MountRequest{Name: r.text(i.member("name"), 64, true), Purpose: r.text(i.member("purpose"), 200, false)}
		if !IsSlug(w.Name) || w.Name == "tmp" {
			r.fail(i.member("name"), "mount_name_invalid", "a slug other than tmp: ^[a-z0-9][a-z0-9_-]{0,63}$")
		}
		if slices.ContainsFunc(out, func(o MountRequest) bool { return o.Name == w.Name }) {
			r.fail(i.member("name"), "mount_duplicate", "a name no other mount has")
		}
		w.Writable = r.oneOf(i.member("mode"), false, "ro", "rw") == "rw"
		out = append(out, w)
	})
	return out
}
