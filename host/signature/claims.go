package signature

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Claims are a publisher's statements about a module in the trusted comment, which the signature
// covers.
type Claims struct {
	Connector string // connector_id of the manifest
	Version   string
	Digest    string // sha256:… of the module
}

// comment writes the claims and the signing key in minisign's form: name:value, separated by tabs.
// The key is included because a signature has only its id, and a first-time user needs the whole
// key.
func (c Claims) comment(key PublicKey, at time.Time) (string, error) {
	for name, text := range map[string]string{"id": c.Connector, "version": c.Version, "digest": c.Digest} {
		if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return "", fmt.Errorf("the %s %.100q %w: it is empty or has control characters", name, text, ErrNotSignable)
		}
	}
	return strings.Join([]string{
		"timestamp:" + strconv.FormatInt(at.Unix(), 10),
		"connector:" + c.Connector, "version:" + c.Version, "digest:" + c.Digest, "key:" + key.String(),
	}, "\t"), nil
}

// readComment parses claims and a key. A comment by another tool has none of them; one that has
// some must have each exactly once.
func readComment(text string) (*Claims, PublicKey, error) {
	found := map[string]string{}
	for field := range strings.SplitSeq(text, "\t") {
		name, value, _ := strings.Cut(field, ":")
		switch name {
		case "connector", "version", "digest", "key":
			if _, twice := found[name]; twice || value == "" {
				return nil, PublicKey{},
					fmt.Errorf("the signature %w: its trusted comment names the %s twice or not at all", ErrDamaged, name)
			}
			found[name] = value
		}
	}
	switch len(found) {
	case 0:
		return nil, PublicKey{}, nil
	case 4:
		key, err := ParseKey(found["key"])
		return &Claims{found["connector"], found["version"], found["digest"]}, key, err
	}
	return nil, PublicKey{}, fmt.Errorf("the signature %w: its trusted comment is not complete", ErrDamaged)
}
