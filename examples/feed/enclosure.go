package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	neturl "net/url"
	"path"

	"github.com/mmcdole/gofeed"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

const (
	maxEnclosures     = 10        // of an entry
	maxEnclosureBytes = 256 << 20 // the host may allow less
	maxKept           = 6000      // entries whose enclosures are not fetched again
)

// An imprint stands for an entry and what it says, in a cursor.
type imprint [12]byte

// imprintOf is of an entry and its record without the files.
func imprintOf(id string, r record) (p imprint) {
	b, _ := json.Marshal(r) // strings and lists of them
	sum := sha256.Sum256(append([]byte(id), b...))
	copy(p[:], sum[:])
	return p
}

// keep has the host fetch and keep the enclosures of an entry. whole is false where one of
// them may be had another time.
func (c *collection) keep(i *gofeed.Item) (files []*guest.File, whole bool, err error) {
	files, whole = []*guest.File{}, true
	for n, e := range i.Enclosures {
		if e == nil || e.URL == "" {
			continue
		}
		if n >= maxEnclosures {
			return files, whole, c.leaveOut(e.URL, fmt.Errorf("the entry has more than %d enclosures", maxEnclosures))
		}
		f, err := c.enclosure(e)
		var t *trouble
		switch {
		case errors.As(err, &t):
			whole = whole && !t.retryable
			err = c.leaveOut(e.URL, t)
		case err == nil:
			files = append(files, f)
		}
		if err != nil {
			return nil, false, err
		}
	}
	return files, whole, nil
}

// enclosure fetches one. Its bytes go from the answer to the store and do not come here.
func (c *collection) enclosure(e *gofeed.Enclosure) (*guest.File, error) {
	u, err := neturl.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &trouble{reason: "enclosure_left_out", err: errors.New("it is no URL that can be fetched")}
	}
	resp, err := c.run.Fetch(guest.Request{URL: e.URL, MaxBytes: maxEnclosureBytes})
	if err != nil {
		return nil, unfetched(err)
	}
	defer resp.Body.Close()
	if resp.Status != 200 {
		return nil, refused(resp)
	}
	f, err := c.run.Attach(guest.Attachment{Stream: "entries", Field: "files", Name: path.Base(u.Path),
		MediaType: cmp.Or(resp.Get("Content-Type"), e.Type), Content: resp.Body})
	switch {
	case errors.Is(err, abi.ETOOBIG), errors.Is(err, abi.ENOSPC), errors.Is(err, abi.ENOTSUP), errors.Is(err, abi.EDENIED):
		return nil, &trouble{reason: "enclosure_left_out", err: err}
	case err != nil:
		return nil, unfetched(err)
	}
	return f, nil
}

// leaveOut tells that an enclosure is not there; its entry is, with the URL.
func (c *collection) leaveOut(url string, err error) error {
	if c.left++; c.left > maxReports {
		return nil
	}
	s := guest.Skip{Stream: "entries", Reason: "enclosure_left_out",
		Message: abi.Cut(url, 500) + ": " + abi.Cut(err.Error(), 1000)}
	if c.left == maxReports {
		s.Message = "Further enclosures are left out."
	}
	return c.run.Skip(s)
}

// maxReports bounds the messages about enclosures.
const maxReports = 50

// A memory is which entries of a feed are stored with their files, as prints in base64.
type memory string

func (m memory) prints() map[imprint]bool {
	b, err := base64.StdEncoding.DecodeString(string(m))
	known := map[imprint]bool{}
	for err == nil && len(b) >= len(imprint{}) {
		known[imprint(b)] = true
		b = b[len(imprint{}):]
	}
	return known
}

func memoryOf(prints []imprint) memory {
	var b []byte
	for _, p := range prints {
		b = append(b, p[:]...)
	}
	return memory(base64.StdEncoding.EncodeToString(b))
}
