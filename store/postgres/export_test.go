package postgres

// Unfit is why a server of a version, a standby or one behind a pooler, cannot keep a store.
func Unfit(version int, standby, pooled bool) error {
	v := server{version: version, standby: standby, fsync: "on", pages: "on", commits: "on", pid: 1}
	pid := uint32(1)
	if pooled {
		pid = 2
	}
	return v.unfit(pid, false)
}
