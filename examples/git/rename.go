package main

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

const (
	// maxScore, minScore and minNameScore are git's: a pair is a rename when at
	// least half of the larger file is in both, three quarters when their name
	// is what brought them together.
	maxScore     = 60_000
	minScore     = maxScore / 2
	minNameScore = maxScore * 3 / 4
	// candidates is how many sources are kept for each new file, as in git.
	candidates = 4

	maxRenamePairs = 40_000
	maxRenameBytes = 16 << 20 // of all files that are compared
	maxRenameFile  = 1 << 20
)

// findRenames joins files that went with files that came: first those of the
// same content, then those of one name alone on each side, then the most alike.
// Above its bounds it does the first step only.
func (c *counter) findRenames(changes []change) ([]change, error) {
	r := &renames{counter: c, seed: maphash.MakeSeed()}
	for _, ch := range changes {
		switch {
		case ch.to == entry{}:
			r.sources = append(r.sources, &side{entry: ch.from})
		case ch.from == entry{}:
			r.targets = append(r.targets, &side{entry: ch.to})
		}
	}
	if len(r.sources) == 0 || len(r.targets) == 0 {
		return changes, nil
	}
	r.exact()
	if r.load() {
		r.byBasename()
		r.byScore()
	}
	return r.apply(changes), r.err
}

// A renames is the search within one commit.
type renames struct {
	*counter
	seed             maphash.Seed
	sources, targets []*side
	err              error
}

// A side is a file that went or came.
type side struct {
	entry
	partner *side
	size    int
	spans   []span // nil: not to be compared
}

func (r *renames) join(source, target *side) { source.partner, target.partner = target, source }

func regular(m filemode.FileMode) bool {
	return m != filemode.Symlink && m != filemode.Submodule && m != filemode.Dir
}

// exact joins files of the same content, best those of the same name.
func (r *renames) exact() {
	byHash := map[plumbing.Hash][]*side{}
	for _, s := range r.sources {
		byHash[s.hash] = append(byHash[s.hash], s)
	}
	for _, t := range r.targets {
		var best *side
		for _, s := range byHash[t.hash] {
			if s.partner != nil || regular(s.mode) != regular(t.mode) {
				continue
			}
			if best == nil || path.Base(s.path) == path.Base(t.path) && path.Base(best.path) != path.Base(t.path) {
				best = s
			}
		}
		if best != nil {
			r.join(best, t)
		}
	}
}

func left(all []*side) []*side {
	return slices.DeleteFunc(slices.Clone(all), func(s *side) bool { return s.partner != nil || !regular(s.mode) })
}

// load reads the remaining files, and reports whether they may be compared.
func (r *renames) load() bool {
	sources, targets := left(r.sources), left(r.targets)
	if len(sources) == 0 || len(targets) == 0 || len(sources)*len(targets) > maxRenamePairs {
		return false
	}
	total := 0
	for _, s := range slices.Concat(sources, targets) {
		data, ok, err := r.blob(s.entry)
		if err != nil {
			r.err = err
			return false
		}
		if !ok || len(data) > maxRenameFile {
			continue
		}
		if total += len(data); total > maxRenameBytes {
			return false
		}
		s.size, s.spans = len(data), r.spansOf(data)
	}
	return true
}

// byBasename joins files whose name occurs once on either side.
func (r *renames) byBasename() {
	once := func(all []*side) map[string]*side {
		m := map[string]*side{}
		for _, s := range left(all) {
			name := path.Base(s.path)
			if _, twice := m[name]; twice {
				m[name] = nil
				continue
			}
			m[name] = s
		}
		return m
	}
	targets := once(r.targets)
	for name, s := range once(r.sources) {
		if t := targets[name]; s != nil && t != nil && similarity(s, t) >= minNameScore {
			r.join(s, t)
		}
	}
}

// A pairing is a rename that might be.
type pairing struct {
	source, target *side
	score          int
	sameName       bool
}

func (p pairing) compare(q pairing) int {
	if p.score != q.score {
		return cmp.Compare(q.score, p.score)
	}
	switch {
	case p.sameName == q.sameName:
		return 0
	case p.sameName:
		return -1
	default:
		return 1
	}
}

// byScore joins what is most alike.
func (r *renames) byScore() {
	var pairs []pairing
	sources := left(r.sources)
	for _, t := range left(r.targets) {
		var best []pairing
		for _, s := range sources {
			if score := similarity(s, t); score >= minScore {
				best = append(best, pairing{s, t, score, path.Base(s.path) == path.Base(t.path)})
			}
		}
		slices.SortStableFunc(best, pairing.compare)
		pairs = append(pairs, best[:min(len(best), candidates)]...)
	}
	slices.SortStableFunc(pairs, pairing.compare)
	for _, p := range pairs {
		if p.source.partner == nil && p.target.partner == nil {
			r.join(p.source, p.target)
		}
	}
}

// apply replaces the deletion and the addition of a rename by one change.
func (r *renames) apply(changes []change) []change {
	gone, come := map[string]bool{}, map[string]*side{}
	for _, t := range r.targets {
		if t.partner != nil {
			come[t.path], gone[t.partner.path] = t, true
		}
	}
	out := changes[:0]
	for _, ch := range changes {
		switch {
		case ch.to == entry{} && gone[ch.from.path]:
			continue
		case ch.from == entry{} && come[ch.to.path] != nil:
			ch.from, ch.renamed = come[ch.to.path].partner.entry, true
		}
		out = append(out, ch)
	}
	return out
}

// A span is all pieces of a file with one hash, a piece being a line or 64 bytes
// of a longer one.
type span struct {
	hash  uint64
	bytes int
}

// spansOf cuts a file into pieces, sorted by hash. A CR before LF does not count
// in text.
func (r *renames) spansOf(data []byte) []span {
	text := !isBinary(data)
	var spans []span
	for len(data) > 0 {
		n := min(len(data), 64)
		if i := bytes.IndexByte(data[:n], '\n'); i >= 0 {
			n = i + 1
		}
		piece := data[:n]
		data = data[n:]
		if text && bytes.HasSuffix(piece, []byte("\r\n")) {
			piece = append(slices.Clone(piece[:n-2]), '\n')
		}
		spans = append(spans, span{maphash.Bytes(r.seed, piece), len(piece)})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.hash, b.hash) })
	merged := spans[:0]
	for _, s := range spans {
		if last := len(merged) - 1; last >= 0 && merged[last].hash == s.hash {
			merged[last].bytes += s.bytes
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// similarity is the share of the larger file that both files have.
func similarity(a, b *side) int {
	larger, smaller := max(a.size, b.size), min(a.size, b.size)
	if a.spans == nil || b.spans == nil || (larger-smaller)*maxScore > larger*(maxScore-minScore) {
		return 0
	}
	common := 0
	for i, j := 0, 0; i < len(a.spans) && j < len(b.spans); {
		x, y := a.spans[i], b.spans[j]
		switch {
		case x.hash < y.hash:
			i++
		case x.hash > y.hash:
			j++
		default:
			common += min(x.bytes, y.bytes)
			i, j = i+1, j+1
		}
	}
	return common * maxScore / larger
}
