package guest

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// decodeStart reads START without encoding/json, which would make up a third of a
// connector's size. It ignores unknown members.
func decodeStart(b []byte) (*abi.Start, error) {
	v, err := parseObject(b)
	if err != nil {
		return nil, err
	}
	s := &abi.Start{}
	for name, m := range v.Members() {
		switch name {
		case "run_id":
			s.RunID, _ = m.Text()
		case "connection_id":
			s.ConnectionID, _ = m.Text()
		case "connector_id":
			s.ConnectorID, _ = m.Text()
		case "collection_mode":
			s.CollectionMode, _ = m.Text()
		case "scope":
			s.Scope = decodeScope(m)
		case "state":
			s.State = rawMembers(m)
		case "bindings":
			s.Bindings = decodeBindings(m)
		case "detail_gaps":
			for g := range m.Items() {
				s.DetailGaps = append(s.DetailGaps, decodeGap(g))
			}
		case "config":
			s.Config = json.RawMessage(m.Raw)
		case "secrets":
			s.Secrets = texts(m)
		case "abi":
			s.ABI = &abi.Version{Major: intMember(m, "major"), Minor: intMember(m, "minor")}
		}
	}
	return s, nil
}

func decodeScope(v strictjson.Value) abi.Scope {
	var scope abi.Scope
	streams, _ := v.Member("streams")
	for item := range streams.Items() {
		var s abi.ScopeStream
		for name, m := range item.Members() {
			switch {
			case name == "name":
				s.Name, _ = m.Text()
			case m.Absent():
			case name == "resources":
				s.Resources = list(m)
			case name == "fields":
				s.Fields = list(m)
			case name == "time_range":
				s.TimeRange = &abi.TimeRange{Since: textMember(m, "since"), Until: textMember(m, "until")}
			default:
				s.Extra = append(s.Extra, abi.ScopeMember{Name: name, Value: json.RawMessage(m.Raw)})
			}
		}
		scope.Streams = append(scope.Streams, s)
	}
	return scope
}

func decodeBindings(v strictjson.Value) abi.Bindings {
	var b abi.Bindings
	if n, ok := v.Member("network"); ok {
		hosts, _ := n.Member("hosts")
		b.Network = &abi.NetworkBinding{Hosts: list(hosts)}
	}
	if f, ok := v.Member("filesystem"); ok {
		b.Filesystem = &abi.FilesystemBinding{}
		mounts, _ := f.Member("mounts")
		for m := range mounts.Items() {
			b.Filesystem.Mounts = append(b.Filesystem.Mounts,
				abi.GuestMount{Path: textMember(m, "path"), Mode: textMember(m, "mode")})
		}
	}
	if i, ok := v.Member("interactive"); ok && !i.Absent() {
		b.Interactive = &struct{}{}
	}
	return b
}

func decodeGap(v strictjson.Value) abi.ServedGap {
	g := abi.ServedGap{
		GapID: textMember(v, "gap_id"), Stream: textMember(v, "stream"), ParentStream: textMember(v, "parent_stream"),
		RecordKey: textMember(v, "record_key"), Reason: textMember(v, "reason"), AttemptCount: intMember(v, "attempt_count"),
	}
	if m, ok := v.Member("detail_locator"); ok && !m.Absent() {
		g.DetailLocator = json.RawMessage(m.Raw)
	}
	if m, ok := v.Member("list_cursor"); ok && !m.Absent() {
		g.ListCursor = json.RawMessage(m.Raw)
	}
	return g
}

// textMember returns a member that is a string, or "".
func textMember(v strictjson.Value, name string) string {
	m, _ := v.Member(name)
	s, _ := m.Text()
	return s
}

func intMember(v strictjson.Value, name string) int {
	m, _ := v.Member(name)
	n, _ := m.Int64()
	return int(n)
}

// list returns the strings of an array, and nil only if v is not an array.
func list(v strictjson.Value) []string {
	if !v.Is(strictjson.KindArray) {
		return nil
	}
	texts := []string{}
	for item := range v.Items() {
		if s, ok := item.Text(); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// texts returns the members of an object that are strings.
func texts(v strictjson.Value) map[string]string {
	if !v.Is(strictjson.KindObject) {
		return nil
	}
	m := map[string]string{}
	for name, member := range v.Members() {
		if s, ok := member.Text(); ok {
			m[name] = s
		}
	}
	return m
}

// rawMembers returns the members of an object as they are spelled.
func rawMembers(v strictjson.Value) map[string]json.RawMessage {
	if !v.Is(strictjson.KindObject) {
		return nil
	}
	m := map[string]json.RawMessage{}
	for name, member := range v.Members() {
		m[name] = json.RawMessage(member.Raw)
	}
	return m
}

// parseObject checks that src is one JSON object. All messages from the host pass through
// it.
func parseObject(src []byte) (strictjson.Value, error) {
	return strictjson.Parse(src, strictjson.ParseOptions{})
}
