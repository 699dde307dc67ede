package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	vcard "github.com/emersion/go-vcard"
)

// putCard emits a contact.
func (c *collector) putCard(_ context.Context, o *object, data []byte) (marks, error) {
	card, pictures, err := parseCard(data)
	if err != nil {
		return 0, &badObject{err}
	}
	s := c.holds[0]
	if !s.Admits(o.key.String(), o.in.path) {
		return o.old.marks & s.mark, nil
	}
	if err := s.put(o.key, contactRecord(o, card, pictures > 0)); err != nil {
		return 0, err
	}
	return s.mark, nil
}

// parseCard reads a vCard without its pictures, sounds and keys: go-vcard takes
// long to put folded lines together.
func parseCard(data []byte) (card vcard.Card, pictures int, err error) {
	defer func() {
		if p := recover(); p != nil {
			card, err = nil, errors.New("a line of it ends too soon")
		}
	}()
	lines, pictures := unfolded(data, vcard.FieldPhoto, vcard.FieldLogo, vcard.FieldSound, vcard.FieldKey)
	card, err = vcard.NewDecoder(strings.NewReader(strings.Join(lines, "\n") + "\n")).Decode()
	if err != nil {
		return nil, 0, fmt.Errorf("it is no contact: %w", err)
	}
	return card, pictures, nil
}

func contactRecord(o *object, c vcard.Card, picture bool) record {
	name := parts(c, vcard.FieldName)
	return record{
		"id": o.key.String(), "address_book": o.in.path, "path": o.path, "uid": first(c, vcard.FieldUID),
		"kind": text(strings.ToLower(first(c, vcard.FieldKind))), "name": text(first(c, vcard.FieldFormattedName)),
		"family_name": text(at(name, 0)), "given_name": text(at(name, 1)), "additional_names": text(at(name, 2)),
		"prefixes": text(at(name, 3)), "suffixes": text(at(name, 4)), "nicknames": list(c, vcard.FieldNickname),
		"organization": text(strings.Join(filled(parts(c, vcard.FieldOrganization)), ", ")),
		"title":        text(first(c, vcard.FieldTitle)), "role": text(first(c, vcard.FieldRole)),
		"emails": typed(c, vcard.FieldEmail, ""), "phones": typed(c, vcard.FieldTelephone, "tel:"),
		"urls": typed(c, vcard.FieldURL, ""), "messaging": typed(c, vcard.FieldIMPP, ""), "addresses": addresses(c),
		"birthday": text(first(c, vcard.FieldBirthday)), "anniversary": text(first(c, vcard.FieldAnniversary)),
		"note": text(first(c, vcard.FieldNote)), "categories": list(c, vcard.FieldCategories),
		"members": list(c, vcard.FieldMember), "has_photo": picture, "updated_at": text(first(c, vcard.FieldRevision)),
	}
}

// first is the preferred value of a field.
func first(c vcard.Card, field string) string {
	f := c.Preferred(field)
	if f == nil {
		return ""
	}
	return value(f.Value)
}

// value undoes the one escape that go-vcard leaves.
func value(s string) string { return clean(strings.ReplaceAll(s, `\;`, ";")) }

// parts are the components of a structured field.
func parts(c vcard.Card, field string) []string {
	f := c.Preferred(field)
	if f == nil {
		return nil
	}
	return partsOf(f)
}

func partsOf(f *vcard.Field) []string {
	out := split(f.Value, ';')
	for i, p := range out {
		out[i] = value(p)
	}
	return out
}

func at(parts []string, i int) string {
	if i >= len(parts) {
		return ""
	}
	return parts[i]
}

func filled(parts []string) []string {
	var out []string
	for _, p := range parts {
		if p != "" && len(out) < maxList {
			out = append(out, p)
		}
	}
	return out
}

func list(c vcard.Card, field string) []string {
	out := []string{}
	for _, f := range c[field] {
		for _, item := range strings.Split(f.Value, ",") {
			if item = clean(item); item != "" && len(out) < maxList {
				out = append(out, item)
			}
		}
	}
	return out
}

// typed are the values of a field with what each is for.
func typed(c vcard.Card, field, scheme string) []map[string]any {
	out := []map[string]any{}
	for _, f := range c[field] {
		v := value(f.Value)
		if len(v) > len(scheme) && strings.EqualFold(v[:len(scheme)], scheme) {
			v = v[len(scheme):]
		}
		if v != "" && len(out) < maxList {
			out = append(out, map[string]any{"value": v, "types": typesOf(f)})
		}
	}
	return out
}

// typesOf are home, work, cell and so on.
func typesOf(f *vcard.Field) []string {
	out := []string{}
	for _, t := range f.Params.Types() {
		for _, one := range strings.Split(t, ",") {
			if one = strings.ToLower(clean(strings.Trim(one, `"`))); one != "" && one != "internet" &&
				one != "pref" && len(out) < 8 {
				out = append(out, one)
			}
		}
	}
	return out
}

func addresses(c vcard.Card) []map[string]any {
	out := []map[string]any{}
	for _, f := range c[vcard.FieldAddress] {
		p := partsOf(f)
		if len(filled(p)) == 0 || len(out) == maxList {
			continue
		}
		out = append(out, map[string]any{"po_box": text(at(p, 0)), "extended": text(at(p, 1)), "street": text(at(p, 2)),
			"city":   text(at(p, 3)),
			"region": text(at(p, 4)), "postal_code": text(at(p, 5)), "country": text(at(p, 6)), "types": typesOf(f)})
	}
	return out
}
