package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// maxNested bounds tags of tags.
const maxNested = 8

// A peeled is what lies behind a tag.
type peeled struct {
	tag    *object.Tag // the outermost tag object; nil for a light tag
	target plumbing.Hash
	kind   plumbing.ObjectType // InvalidObject: the target is missing
	commit *object.Commit      // nil unless the target is one
}

// collectTags emits the tags and deletes those that are gone.
func collectTags(s *stream, r *repository, set *refSet) error {
	var names []string
	for _, one := range set.all {
		if !one.name.IsTag() {
			continue
		}
		name := utf8Name(string(one.name))
		names = append(names, name)
		if !s.Admits(name) {
			continue
		}
		p, err := r.peel(one.hash)
		if err != nil {
			return err
		}
		if err := s.emitTag(name, one, p); err != nil {
			return err
		}
	}
	return s.forget(names)
}

func (s *stream) emitTag(name string, one ref, p peeled) error {
	created := ""
	switch {
	case p.tag != nil:
		created = timeText(p.tag.Tagger.When)
	case p.commit != nil:
		created = timeText(p.commit.Committer.When)
	}
	if !s.AdmitsTime(created) {
		return nil
	}
	row := s.row()
	row.text("name", name)
	row.text("short_name", repaired(one.name.Short()))
	row.flag("annotated", p.tag != nil)
	row.text("object", one.hash.String())
	row.text("target", p.target.String())
	kind := ""
	if p.kind != plumbing.InvalidObject {
		kind = p.kind.String()
	}
	row.textOrNull("target_type", kind)
	row.textOrNull("created_at", created)
	var by object.Signature
	message := ""
	if p.tag != nil {
		by, message = p.tag.Tagger, p.tag.Message
	}
	row.textOrNull("tagger_name", cut(repaired(by.Name), maxShort))
	row.textOrNull("tagger_email", cut(repaired(by.Email), maxShort))
	row.textOrNull("message", cut(repaired(message), maxText))
	return row.emit(name)
}

// peel follows tag objects to what they tag.
func (r *repository) peel(h plumbing.Hash) (peeled, error) {
	p := peeled{target: h}
	for range maxNested {
		c, err := r.read(p.target)
		if errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, errTooLarge) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		if c.kind != plumbing.TagObject {
			return p, p.reached(c)
		}
		tag := &object.Tag{}
		if err := tag.Decode(&encoded{content: c, hash: p.target}); err != nil {
			return p, nil // damaged: known by its hash only
		}
		if p.tag == nil {
			p.tag = tag
		}
		p.target = tag.Target
	}
	return p, nil
}

// reached notes the object at the end. One that cannot be read is as good as
// missing.
func (p *peeled) reached(c content) error {
	p.kind = c.kind
	if c.kind != plumbing.CommitObject {
		return nil
	}
	commit := &object.Commit{}
	if commit.Decode(&encoded{content: c, hash: p.target}) == nil {
		p.commit = commit
	}
	return nil
}

// An encoded hands an object to go-git's decoders.
type encoded struct {
	content
	hash plumbing.Hash
}

var _ plumbing.EncodedObject = (*encoded)(nil)

func (e *encoded) Hash() plumbing.Hash            { return e.hash }
func (e *encoded) Type() plumbing.ObjectType      { return e.kind }
func (e *encoded) SetType(t plumbing.ObjectType)  { e.kind = t }
func (e *encoded) Size() int64                    { return int64(len(e.data)) }
func (e *encoded) SetSize(int64)                  {}
func (e *encoded) Reader() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(e.data)), nil }
func (e *encoded) Writer() (io.WriteCloser, error) {
	return nil, errReadOnly
}
