package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/sluicehost/sluice/host"
)

// System returns what is known of the host.
func (c systemClient) System(ctx context.Context) (out host.Info, err error) {
	return out, c.get(ctx, at("system"), nil, &out)
}

// Backup has the host copy everything into a file and waits for it, however long that
// takes. Only the local socket may.
func (c systemClient) Backup(ctx context.Context, q host.NewBackup) (out host.Backup, err error) {
	header, body, err := encode(q)
	if err != nil {
		return out, err
	}
	return out, c.await(ctx, http.MethodPost, at("backups"), nil, header, body, &out)
}

// Audit calls do with entries of the audit log, newest first, until do returns
// false. Zero members of the query select everything.
func (c auditClient) Audit(ctx context.Context, f host.AuditQuery,
	do func(host.AuditEntry) (more bool, err error)) error {
	q := url.Values{}
	for name, v := range map[string]string{"action": f.Action, "actor": f.Actor, "target": f.Target,
		"from": moment(f.From), "until": moment(f.Until)} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return each(ctx, c.transport, at("audit"), q, do)
}

// AuditCopies checks what the store has of the audit logs of hosts that share it. That reads all of them.
func (c auditClient) AuditCopies(ctx context.Context) ([]host.AuditCopy, error) {
	var got list[host.AuditCopy]
	err := c.get(ctx, at("audit", "copies"), nil, &got)
	return got.Data, err
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
