package app

import (
	"errors"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// checkChange refuses values that the manifest or the host does not accept.
func checkChange(m *abi.Manifest, q host.ChangeConnection) error {
	if d := q.DisplayName; d != nil && *d != "" && (abi.Blank(*d) || len(*d) > maxShownName || abi.Clean(*d) != *d) {
		return invalid("displayName", "text", "want at most %d bytes of text without control characters", maxShownName)
	}
	if p := q.ProfileName; p != nil && *p != "" && !abi.IsProfileName(*p) {
		return invalid("profileName", "profile_name_invalid", "want ^[A-Za-z0-9_-]{1,64}$").With("code",
			"profile_name_invalid")
	}
	if l := q.LeakCanary; l != nil && *l != "enforce" && *l != "off" {
		return invalid("leakCanary", "value_unknown", "want enforce or off")
	}
	if q.Labels != nil {
		if err := CheckLabels(*q.Labels); err != nil {
			return invalid("labels", "label", "%v", err)
		}
	}
	if t := q.CollectionSince; t != nil && *t != "" {
		if _, ok := abi.ParseTime(*t); !ok || len(*t) > 64 {
			return invalid("collectionSince", "time", "want an RFC 3339 time or date")
		}
	}
	if len(q.Settings) > 0 {
		return checkSettings(m, q.Settings)
	}
	return nil
}

// checkSettings checks given settings against the manifest. A connection may be made without settings; only its
// runs are refused then.
func checkSettings(m *abi.Manifest, raw []byte) error {
	if len(raw) > maxSettings {
		return invalid("settings", "too_large", "want at most %d bytes", maxSettings)
	}
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return invalid("settings", "object", "want one JSON object, each member once")
	}
	if m.Sluice == nil {
		return nil
	}
	var bad *abi.SettingError
	if err := m.Sluice.Settings.Known(v); errors.As(err, &bad) {
		return invalid("settings", "setting_unknown", "a member %s", bad.Want)
	}
	if err := m.Sluice.Settings.Check(v); errors.As(err, &bad) {
		return invalid("settings/"+bad.Name, "setting_invalid",
			"it is missing, or not of the type and values that the connector declares").With("setting", bad.Name)
	}
	return nil
}

// changed lists the members that a change sets, without their values.
func changed(q host.ChangeConnection) string {
	var out []string
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"displayName", q.DisplayName != nil}, {"settings", len(q.Settings) > 0}, {"version", q.Version != nil},
		{"enabled", q.Enabled != nil}, {"collectionSince", q.CollectionSince != nil}, {"profileName", q.ProfileName != nil},
		{"leakCanary", q.LeakCanary != nil}, {"labels", q.Labels != nil},
	} {
		if m.set {
			out = append(out, m.name)
		}
	}
	return strings.Join(out, ",")
}

func applyChange(c *store.Connection, q host.ChangeConnection) {
	for _, t := range []struct{ into, from *string }{
		{&c.DisplayName, q.DisplayName}, {&c.CollectionSince, q.CollectionSince}, {&c.ProfileName, q.ProfileName},
		{&c.LeakCanary, q.LeakCanary},
	} {
		if t.from != nil {
			*t.into = *t.from
		}
	}
	if q.Labels != nil {
		c.Labels = slices.Clone(*q.Labels)
	}
	if q.Enabled != nil {
		c.Enabled = *q.Enabled
	}
	if len(q.Settings) > 0 {
		c.Settings = strictjson.AppendCompact(nil, q.Settings)
	}
}
