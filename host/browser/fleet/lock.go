package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// lockEvery is the interval for retrying a lock that is held.
const lockEvery = 50 * time.Millisecond

// lock takes the lock of a profile, which is held until the returned file is closed. It waits until
// ctx ends and then refuses with profile_in_use. waiting is called once before it waits.
func (f *folders) lock(ctx context.Context, connection, name string, waiting func()) (*os.File, error) {
	file, err := f.root.OpenFile(filepath.Join(connection, ".lock-"+name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of a profile: %w", err)
	}
	for {
		ok, err := tryLock(file)
		if err != nil {
			_ = file.Close() // nothing was written
			return nil, fmt.Errorf("lock a profile: %w", err)
		}
		if ok {
			return file, nil
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			_ = file.Close() // as above
			return nil, errInUse
		}
	}
}

// claims are the uids that only this host may use on this machine while it lives. Everything that
// runs under a browser's uid is killed when the browser ends, so two root hosts must never share
// one. The system drops a claim with the process that holds it.
type claims map[int]*os.File

// claimDir returns the directory in which root hosts leave their claims; only root writes there.
func claimDir() string {
	if _, err := os.Stat("/run"); err == nil {
		return "/run/sluice-uids"
	}
	return "/var/run/sluice-uids"
}

// take claims a uid. It reports false if another host has it.
func (c claims) take(uid int) (bool, error) {
	if c[uid] != nil || os.Geteuid() != 0 {
		return true, nil
	}
	dir := claimDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("claim a uid for a browser: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(uid)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, fmt.Errorf("claim a uid for a browser: %w", err)
	}
	if ok, err := tryLock(f); !ok || err != nil {
		return false, errors.Join(err, f.Close())
	}
	c[uid] = f
	return true, nil
}

// drop releases all claims, once the host has no browsers left.
func (c claims) drop() (err error) {
	for uid, f := range c {
		err = errors.Join(err, f.Close())
		delete(c, uid)
	}
	return err
}
