package crash

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/tests/campaign"
)

// secret returns the value of a secret in the vault of a data directory.
func secret(data, connection, name string) (value string, err error) {
	v, err := vault.Open(data)
	if err != nil {
		return "", err
	}
	s, err := v.Get(connection, name)
	if err != nil {
		return "", err
	}
	s.Use(func(b []byte) { value = string(b) })
	return value, nil
}

// TestKillVault: whenever a command that changes the vault is killed, every secret has
// one whole value that it was given, and none older than the last acknowledged one.
func TestKillVault(t *testing.T) {
	c := campaign.New(t, "kill -9, the vault")
	adopt(t)
	p := program{t: t, data: filepath.Join(t.TempDir(), "data")}
	names := []string{"a", "b", "c"}
	value := func(name string, n int) string { return fmt.Sprintf("%s%05d", strings.Repeat(name, 1+n*997%9000), n) }
	acked, last := map[string]int{}, map[string]int{} // numbers of values: acknowledged, and written at all
	n := 0
	for total, done := c.Length(5, 1), 0; done < total; n++ {
		name, after := names[c.IntN(len(names))], time.Duration(c.IntN(60_000))*time.Microsecond
		if len(acked) < len(names) { // all are there before anything is killed
			name, after = names[len(acked)], time.Minute
		}
		rotate := len(acked) == len(names) && c.IntN(3) == 0
		cmd := p.command("secret", "rotate")
		if !rotate {
			cmd = p.command("secret", "set", "mail", name, "--file", "-")
			cmd.Stdin = strings.NewReader(value(name, n))
			last[name] = n
		}
		if !killAt(t, cmd, after) {
			done++
			c.Cycle()
		} else if !rotate {
			acked[name] = n
		}
		for name, from := range acked {
			c.Checked(1)
			got, err := secret(p.data, "mail", name)
			switch {
			case err != nil:
				c.Lost(1, "secret %s: %v", name, err)
			case got == value(name, from):
			case got == value(name, last[name]): // it was killed between doing and saying so
				acked[name] = last[name]
			default:
				c.Torn("secret %s has %d bytes that are no value it may have", name, len(got))
			}
		}
		if t.Failed() {
			return
		}
	}
	if o := p.do("secret", "rotate"); o.code != 0 {
		t.Errorf("a rotation after all that: %s", o.errs)
	}
	for name, from := range acked {
		if got, err := secret(p.data, "mail", name); err != nil || got != value(name, from) {
			c.Lost(1, "after a rotation secret %s has %d bytes: %v", name, len(got), err)
		}
	}
}
