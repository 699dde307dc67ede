package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/sluicehost/sluice/abi"
)

var (
	// ErrRecipient reports that a recipient is missing or invalid, or that others could add theirs.
	ErrRecipient = errors.New("no recipient")
	// ErrKey reports that the identity does not open the backup.
	ErrKey = errors.New("the identity does not open the backup")
)

// Recipients are those who can open a backup.
type Recipients []age.Recipient

// Identities open backups made for their recipients.
type Identities []age.Identity

// recipientsName is the file in the data directory that lists the recipients of backups.
const recipientsName = "backup.recipients"

// maxKeys bounds files of recipients and identities, in bytes.
const maxKeys = 64 * abi.KiB

// ParseRecipients parses age recipients.
func ParseRecipients(texts []string) (Recipients, error) {
	var out Recipients
	for _, t := range texts {
		r, err := age.ParseRecipients(strings.NewReader(t))
		if err != nil || strings.ContainsAny(t, "\r\n") {
			return nil, fmt.Errorf("%w: %q is none; age-keygen prints one, age1…", ErrRecipient, abi.Cut(abi.Clean(t), 12))
		}
		out = append(out, r...)
	}
	return out, nil
}

// ReadRecipients reads DATA/backup.recipients, which may be missing.
func ReadRecipients(dir string) (Recipients, error) {
	path := filepath.Join(dir, recipientsName)
	text, fi, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%w: others can change %s and add theirs; look at it, then run: chmod go-w %s",
			ErrRecipient, path, path)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	out, err := ParseRecipients(lines)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return out, nil
}

// NewIdentity writes a new identity to a file that must not exist, and adds its recipient to DATA/backup.recipients.
func NewIdentity(dir, path string) (recipient string, err error) {
	if _, err := ReadRecipients(dir); err != nil {
		return "", err
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("make identity: %w", err)
	}
	recipient = id.Recipient().String()
	text := fmt.Appendf(nil,
		"# opens backups of Sluice made for this recipient; keep it away from them\n# public key: %s\n%s\n", recipient, id)
	defer clear(text)
	if err := writeNew(path, text); err != nil {
		return "", fmt.Errorf("write identity: %w", err)
	}
	known, _, err := readSmall(filepath.Join(dir, recipientsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(known) > 0 && known[len(known)-1] != '\n' {
		known = append(known, '\n')
	}
	return recipient, replace(filepath.Join(dir, recipientsName), append(known, recipient+"\n"...))
}

// ReadIdentities reads a file of age identities.
func ReadIdentities(path string) (Identities, error) {
	text, _, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	defer clear(text)
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // its text may quote the file
		return nil, fmt.Errorf("%w: %s holds no age identity, AGE-SECRET-KEY-1…", ErrKey, path)
	}
	return ids, nil
}

// ephemeral returns an identity for the drill and its recipient. With it the written file can be read back without the
// owner's identity. It only exists in this process, so its stanza in the file is useless afterwards. It is of the same
// kind as the other recipients, because age does not mix post-quantum keys with others.
func ephemeral(others Recipients) (age.Identity, age.Recipient, error) {
	for _, r := range others {
		if _, ok := r.(*age.HybridRecipient); ok {
			id, err := age.GenerateHybridIdentity()
			if err != nil {
				return nil, nil, err
			}
			return id, id.Recipient(), nil
		}
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, nil, err
	}
	return id, id.Recipient(), nil
}

// ageIntro is the beginning of every age file.
const ageIntro = "age-encryption.org/"

// decrypt opens an age file. age limits what it reads before it has found a matching identity.
func decrypt(r io.Reader, ids Identities) (io.Reader, error) {
	out, err := age.Decrypt(r, ids...)
	var other *age.NoIdentityMatchError
	switch {
	case errors.As(err, &other):
		return nil, fmt.Errorf("%w: it was made for another; name the file with the identity of one of its recipients",
			ErrKey)
	case err != nil:
		return nil, broken(err, "the header of age")
	}
	return out, nil
}
