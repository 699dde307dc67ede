package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A repository is an open one.
type repository struct {
	*objects
	dot     *dotgit.DotGit
	shallow map[plumbing.Hash]bool // commits whose parents were not fetched
}

// openRepository opens the repository in dir: a work tree, a bare repository,
// or a work tree whose .git is a file. mount is the directory that can be read.
func openRepository(mount, dir string) (*repository, error) {
	gitDir, err := findGitDir(mount, dir)
	if err != nil {
		return nil, err
	}
	common, err := commonDir(gitDir)
	if err != nil {
		return nil, err
	}
	if err := checkFormat(common); err != nil {
		return nil, err
	}
	shallow, err := readShallow(common)
	if err != nil {
		return nil, err
	}
	objects, err := openObjects(filepath.Join(common, "objects"))
	if err != nil {
		return nil, err
	}
	layout := dotgit.NewRepositoryFilesystem(readOnly{gitDir}, readOnly{common})
	return &repository{objects: objects, dot: dotgit.New(layout), shallow: shallow}, nil
}

// findGitDir returns the directory that holds HEAD.
func findGitDir(mount, dir string) (string, error) {
	dotGit := filepath.Join(dir, ".git")
	st, err := os.Stat(dotGit)
	switch {
	case err == nil && st.IsDir():
		return dotGit, nil
	case err == nil:
		return followGitFile(mount, dotGit)
	case isGitDir(dir):
		return dir, nil
	default:
		return "", guest.Fail("repository_not_found", false, guest.ManualActionRequired,
			"there is no git repository in the mounted directory: mount the folder that has .git in it, or a bare repository")
	}
}

func isGitDir(dir string) bool {
	_, head := os.Stat(filepath.Join(dir, "HEAD"))
	_, objects := os.Stat(filepath.Join(dir, "objects"))
	_, commondir := os.Stat(filepath.Join(dir, "commondir"))
	return head == nil && (objects == nil || commondir == nil)
}

// followGitFile reads the .git file of a linked work tree or submodule. Its path
// is mostly an absolute one of the owner's machine, so the part of it that lies
// in the mount is looked for.
func followGitFile(mount, file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read .git: %w", err)
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir:")
	if !ok {
		return "", fmt.Errorf("read .git: it names no directory")
	}
	target = strings.TrimSpace(target)
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(file), target)
	}
	if isGitDir(target) {
		return target, nil
	}
	for _, rest, more := strings.Cut(filepath.ToSlash(target), "/"); more; _, rest, more = strings.Cut(rest, "/") {
		if inside := filepath.Join(mount, rest); rest != "" && isGitDir(inside) {
			return inside, nil
		}
	}
	return "", guest.Fail("repository_outside_mount", false, guest.ManualActionRequired,
		"this is a linked work tree or submodule whose repository lies outside of the mounted directory: mount the main repository instead")
}

// commonDir returns where objects and refs are: elsewhere for a linked work
// tree.
func commonDir(gitDir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", fmt.Errorf("read commondir: %w", err)
	}
	dir := strings.TrimSpace(string(b))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(gitDir, dir)
	}
	return dir, nil
}

// checkFormat refuses the formats that have other hashes or other refs.
func checkFormat(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read config: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(value))
		if name == "objectformat" && value != "sha1" || name == "refstorage" && value != "files" {
			return guest.Fail("repository_format_unsupported", false, guest.RetryOnConnectorUpgrade,
				"the repository uses %s = %s, which this connector cannot read", name, value)
		}
	}
	return nil
}

// readShallow returns the commits at which a shallow clone ends.
func readShallow(dir string) (map[plumbing.Hash]bool, error) {
	f, err := os.Open(filepath.Join(dir, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read shallow: %w", err)
	}
	defer f.Close()
	shallow := map[plumbing.Hash]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if h, ok := parseHash(lines.Text()); ok {
			shallow[h] = true
		}
	}
	return shallow, lines.Err()
}

func parseHash(text string) (plumbing.Hash, bool) {
	text = strings.TrimSpace(text)
	if !plumbing.IsHash(text) {
		return plumbing.ZeroHash, false
	}
	return plumbing.NewHash(text), true
}

// shallowDigest names the end of a shallow clone; it changes when more is
// fetched.
func (r *repository) shallowDigest() string {
	if len(r.shallow) == 0 {
		return ""
	}
	var all []string
	for h := range r.shallow {
		all = append(all, h.String())
	}
	slices.Sort(all)
	return digest(strings.Join(all, "\n"))
}
