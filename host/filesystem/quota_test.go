package filesystem_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

// smallQuotas leave room for little: 1 MiB, 5 files, 4 directories, depth 3.
func smallQuotas() filesystem.Quotas {
	q := filesystem.Quota{Bytes: abi.MiB, Files: 5, Dirs: 4, Depth: 3}
	return filesystem.Quotas{Scratch: q, Root: q}
}

func eachWritable(t *testing.T, do func(t *testing.T, g *guest, mount uint32)) {
	for name, mount := range map[string]uint32{"root": rw, "tmp": tmp} {
		t.Run(name, func(t *testing.T) { do(t, newGuest(t, smallQuotas()), mount) })
	}
}

// Bytes, to the last one, and back when files go away.
func TestQuotaBytes(t *testing.T) {
	eachWritable(t, func(t *testing.T, g *guest, mount uint32) {
		whole := make([]byte, abi.MiB)
		g.want("all of it", g.put(mount, "a", whole), ok)
		h := g.handle(mount, "a", abi.FileWrite)
		g.want("one byte more", g.write(h, abi.MiB, []byte{1}), full)
		g.want("over what is there", g.write(h, 100, []byte("again")), ok)
		g.want("another file", g.put(mount, "b", []byte{1}), full)
		g.want("half", g.truncate(h, abi.MiB/2), ok)
		g.want("the other half", g.put(mount, "b", whole[:abi.MiB/2]), ok)
		g.want("more", g.put(mount, "c", []byte{1}), full)
		g.want("close", g.close(h), ok)
		g.want("unlink", g.path(abi.CallFileUnlink, mount, "a"), ok)
		g.want("again", g.put(mount, "d", whole[:abi.MiB/2]), ok)
		g.want("replace", g.rename(mount, "d", "b"), ok)
		g.want("in its place", g.put(mount, "e", whole[:abi.MiB/2]), ok)
		g.want("and no more", g.put(mount, "f", []byte{1}), full)
	})
}

// Sizes count as the larger of logical and allocated.
func TestQuotaSparse(t *testing.T) {
	eachWritable(t, func(t *testing.T, g *guest, mount uint32) {
		h := g.handle(mount, "a", abi.FileWrite|abi.FileCreate)
		g.want("grow over", g.truncate(h, 1<<40), full)
		g.want("write far away", g.write(h, 1<<40, []byte{1}), full)
		g.want("write at the end of all", g.write(h, 1<<63-1, []byte{1}), tooBig)
		g.want("write before the end of all", g.write(h, 1<<63-3, []byte{1}), full)
		g.want("grow", g.truncate(h, abi.MiB), ok)
		g.want("another", g.put(mount, "b", []byte{1}), full)
		g.want("fill the hole", g.write(h, 0, make([]byte, abi.MiB)), ok)
		g.want("shrink", g.truncate(h, 0), ok)
		// One byte takes a block.
		for i := range 3 {
			g.want("small", g.put(mount, fmt.Sprint("s", i), []byte{1}), ok)
		}
		g.want("the rest, if only bytes counted", g.truncate(h, abi.MiB-3), full)
	})
}

// A name given back while the file is open gives no room back.
func TestQuotaOpenFilesCount(t *testing.T) {
	eachWritable(t, func(t *testing.T, g *guest, mount uint32) {
		g.want("put", g.put(mount, "a", make([]byte, abi.MiB)), ok)
		one, two := g.handle(mount, "a", abi.FileRead), g.handle(mount, "a", abi.FileRead)
		g.want("unlink", g.path(abi.CallFileUnlink, mount, "a"), ok)
		g.want("while open", g.put(mount, "b", []byte{1}), full)
		g.want("close one", g.close(one), ok)
		g.want("while open once more", g.put(mount, "b", []byte{1}), full)
		g.want("close two", g.close(two), ok)
		g.want("afterwards", g.put(mount, "b", make([]byte, abi.MiB)), ok)

		h := g.handle(mount, "c", abi.FileWrite|abi.FileCreate)
		g.want("replaced while open", g.rename(mount, "b", "c"), ok)
		g.want("written without a name", g.write(h, 0, []byte{1}), full)
		g.want("close", g.close(h), ok)
		g.want("unlink", g.path(abi.CallFileUnlink, mount, "c"), ok)
		g.want("all is free", g.put(mount, "d", make([]byte, abi.MiB)), ok)
	})
}

// Inode floods.
func TestQuotaCounts(t *testing.T) {
	eachWritable(t, func(t *testing.T, g *guest, mount uint32) {
		for i := range 5 {
			g.want("file", g.put(mount, fmt.Sprint("f", i), nil), ok)
		}
		g.want("a file more", g.put(mount, "f5", nil), full)
		g.want("an old file", g.put(mount, "f0", []byte("x")), ok)
		g.want("unlink", g.path(abi.CallFileUnlink, mount, "f0"), ok)
		g.want("in its place", g.put(mount, "f5", nil), ok)
		for i := range 4 {
			g.want("dir", g.path(abi.CallFileMkdir, mount, fmt.Sprint("d", i)), ok)
		}
		g.want("a dir more", g.path(abi.CallFileMkdir, mount, "d4"), full)
		g.want("rmdir", g.path(abi.CallFileRmdir, mount, "d0"), ok)
		g.want("in its place", g.path(abi.CallFileMkdir, mount, "d4"), ok)
	})
}

// Depth, also by moving a tree down.
func TestQuotaDepth(t *testing.T) {
	eachWritable(t, func(t *testing.T, g *guest, mount uint32) {
		for _, d := range []string{"a", "a/b", "a/b/c", "x"} {
			g.want("mkdir "+d, g.path(abi.CallFileMkdir, mount, d), ok)
		}
		g.want("mkdir at 4", g.path(abi.CallFileMkdir, mount, "a/b/c/d"), full)
		g.want("file at 4", g.put(mount, "a/b/c/f", nil), full)
		g.want("file at 3", g.put(mount, "a/b/f", nil), ok)
		g.want("move a file to 4", g.rename(mount, "a/b/f", "a/b/c/f"), full)
		g.want("move a tree of 3 down", g.rename(mount, "a", "x/a"), full)
		g.want("move a tree of 2 sideways", g.rename(mount, "a/b", "x/b"), ok)
		g.want("move a leaf up", g.rename(mount, "x/b/c", "c"), ok)
		g.want("move a leaf down", g.rename(mount, "c", "x/b/c"), ok)
		g.want("move a leaf to 4", g.rename(mount, "a", "x/b/c/a"), full)
	})
}

// A rename that would have to look at a large tree does not.
func TestQuotaDepthOfALargeTree(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	must(t, os.Mkdir(g.rw+"/x", 0o755))
	for i := range abi.MaxFileEntries + 1 {
		writeFile(t, fmt.Sprintf("%s/large/%d", g.rw, i), "")
	}
	g.want("down", g.rename(rw, "large", "x/large"), full)
	g.want("sideways", g.rename(rw, "large", "huge"), ok)
	must(t, os.Remove(g.rw+"/huge/0"))
	g.want("down, with an entry less", g.rename(rw, "huge", "x/large"), ok)
}

// What the owner had there is not the run's: it is neither charged nor
// credited.
func TestQuotaIsAboutTheRun(t *testing.T) {
	g := newGuest(t, smallQuotas())
	writeFile(t, g.rw+"/old", strings.Repeat("o", 3*abi.MiB))
	for i := range 20 {
		writeFile(t, fmt.Sprintf("%s/many/%d", g.rw, i), "x")
	}
	g.want("put", g.put(rw, "a", make([]byte, abi.MiB)), ok)
	g.want("unlink what was there", g.path(abi.CallFileUnlink, rw, "old"), ok)
	g.want("its room is not the run's", g.put(rw, "b", []byte{1}), full)
	g.want("unlink", g.path(abi.CallFileUnlink, rw, "a"), ok)
	writeFile(t, g.rw+"/older", strings.Repeat("o", 3*abi.MiB))
	h := g.handle(rw, "older", abi.FileWrite)
	g.want("append", g.write(h, 3*abi.MiB, []byte{1}), ok)
	g.want("shrink", g.truncate(h, 0), ok)
	g.want("only what was added comes back", g.put(rw, "a", make([]byte, abi.MiB)), ok)
	g.want("and no more", g.write(h, 0, []byte{1}), full)
	g.want("unlink", g.path(abi.CallFileUnlink, rw, "a"), ok)
	g.want("close", g.close(h), ok)
	h = g.handle(rw, "many/19", abi.FileWrite)
	g.want("unlink while open", g.path(abi.CallFileUnlink, rw, "many/19"), ok)
	g.want("fill what has no name", g.write(h, 0, make([]byte, abi.MiB)), ok)
	g.want("meanwhile", g.put(rw, "a", make([]byte, 16*abi.KiB)), full)
	g.want("close", g.close(h), ok)
	g.want("it comes back", g.put(rw, "a", make([]byte, abi.MiB)), ok)
	g.want("unlink", g.path(abi.CallFileUnlink, rw, "a"), ok)
	grown := 0
	for i := range 19 {
		h := g.handle(rw, fmt.Sprint("many/", i), abi.FileWrite)
		if g.write(h, 0, make([]byte, 16*abi.KiB)) == ok {
			grown++
		}
		g.close(h)
	}
	if grown != 3 { // a file each, besides older and the empty b
		t.Errorf("%d old files could grow, want 4", grown)
	}
}

// A quota says nothing about reading, and nothing leaks into the next run.
func TestQuotaStartsAnew(t *testing.T) {
	g := newGuest(t, smallQuotas())
	g.want("put", g.put(rw, "a", make([]byte, abi.MiB)), ok)
	must(t, g.fs.Close())
	g.scratch += "2"
	g.open(smallQuotas())
	g.want("put", g.put(rw, "b", make([]byte, abi.MiB)), ok)
	if _, err := os.Stat(g.rw + "/a"); err != nil {
		t.Error(err)
	}
}
