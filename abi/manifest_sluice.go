package abi

func (r *manifestReader) sluice(m *Manifest, a at) {
	if !r.object(a, false) {
		return
	}
	b := &SluiceBlock{InteractionFields: map[string]FieldDelivery{}, Budgets: map[string]int64{}}
	if s := a.member("settings"); r.object(s, false) {
		b.Settings = r.settings(s)
	}
	if id := a.member("node_id"); !id.Absent() {
		if b.NodeID = r.text(id, 64, true); !IsSlug(b.NodeID) {
			r.fail(id, "node_id_invalid", "a slug: ^[a-z0-9][a-z0-9_-]{0,63}$")
		}
	}
	b.Secrets = r.secrets(a.member("secrets"), false)
	r.oauthSecrets(b, a.member("secrets"))
	r.sessionTokens(b, a.member("session_tokens"))
	if fields := a.member("interaction_fields"); r.object(fields, false) {
		for name := range fields.Members() {
			f := fields.member(name)
			if r.object(f, true) {
				b.InteractionFields[name] = r.delivery(f)
			}
		}
	}
	if budgets := a.member("budgets"); r.object(budgets, false) {
		for name := range budgets.Members() {
			n, ok := budgets.member(name).SafeInteger()
			if !ok || n <= 0 {
				r.fail(budgets.member(name), "budget_invalid", "a whole number of milliseconds above 0")
			}
			b.Budgets[name] = n
		}
	}
	m.Sluice = b
}

// secrets reads secret declarations. Of capture fields only those marked
// secret count as secrets; the others are settings of an unmodified connector.
func (r *manifestReader) secrets(a at, capture bool) []SecretField {
	var out []SecretField
	r.list(a, 64, func(i at) {
		if !r.object(i, true) {
			return
		}
		f := SecretField{
			Name: r.text(i.member("name"), 64, true), Label: r.text(i.member("label"), 200, false),
			Required: r.flag(i.member("required")), Secret: true,
			Env: r.env(i.member("env")), FieldDelivery: r.delivery(i),
		}
		if !isFieldName(f.Name) {
			r.fail(i.member("name"), "secret_name_invalid", "^[A-Za-z0-9_.-]{1,64}$")
		}
		if capture {
			f.Secret = r.flag(i.member("secret"))
		} else {
			f.OAuth = r.oauth(i.member("oauth"))
		}
		out = append(out, f)
	})
	return out
}

// delivery reads how a value is handed over and where it may go (R155, R160).
func (r *manifestReader) delivery(a at) FieldDelivery {
	d := FieldDelivery{Delivery: r.oneOf(a.member("delivery"), false, "sealed", "plain")}
	r.list(a.member("destinations"), 32, func(i at) {
		if r.object(i, true) {
			d.Destinations = append(d.Destinations, Destination{
				Origin:     r.text(i.member("origin"), 512, true),
				PathPrefix: r.text(i.member("path_prefix"), 512, false),
				Placements: r.texts(i.member("placements"), 16),
			})
		}
	})
	return d
}

// env reads names of environment variables (R33).
func (r *manifestReader) env(a at) []string {
	names := r.texts(a, 8)
	for _, n := range names {
		if !isEnvName(n) {
			r.fail(a, "env_name_invalid", "names of the form ^[A-Z_][A-Z0-9_]*$, TZ excepted")
		}
	}
	return names
}

func isEnvName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && s != "TZ"
}

func isFieldName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
