package filesystem_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

// BenchmarkOpenSmall is the host's part of reading a small file three
// directories down, as loose objects of git lie.
func BenchmarkOpenSmall(b *testing.B) {
	g := newGuest(b, filesystem.DefaultQuotas())
	const files = 10_000
	var reqs [files][]byte
	for i := range files {
		path := fmt.Sprintf("repo/objects/%02x/%05d", i%256, i)
		writeFile(b, g.ro+"/"+path, "content of a small file")
		reqs[i] = abi.FileOpenRequest{Mount: ro, Flags: abi.FileRead, Ahead: abi.FileBlock, Path: path}.Append(nil)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, errno := g.fs.Handle(b.Context(), abi.CallFileOpen, reqs[n%files]); errno != abi.OK {
			b.Fatal(errno)
		}
		n++
	}
}

// BenchmarkRead reads a large file in chunks.
func BenchmarkRead(b *testing.B) {
	g := newGuest(b, filesystem.DefaultQuotas())
	const size = 64 * abi.MiB
	must(b, os.WriteFile(g.ro+"/f", make([]byte, size), 0o644))
	h := g.handle(ro, "f", abi.FileRead)
	for _, chunk := range []int{abi.FileBlock, abi.MaxFileChunk} {
		b.Run(fmt.Sprint(chunk), func(b *testing.B) {
			b.SetBytes(int64(chunk))
			b.ReportAllocs()
			at := int64(0)
			for b.Loop() {
				req := abi.FileReadRequest{Handle: h, Offset: at, Length: uint32(chunk)}.Append(nil)
				if reply, errno := g.fs.Handle(b.Context(), abi.CallFileRead, req); errno != abi.OK || len(reply) != chunk {
					b.Fatal(errno)
				}
				at = (at + int64(chunk)) % size
			}
		})
	}
}

// BenchmarkList reads a directory of 10,000 entries.
func BenchmarkList(b *testing.B) {
	g := newGuest(b, filesystem.DefaultQuotas())
	for i := range 10_000 {
		writeFile(b, fmt.Sprintf("%s/many/%d", g.ro, i), "")
	}
	for b.Loop() {
		if list, a := g.list(ro, "many"); a != ok || len(list) != 10_000 {
			b.Fatal(a)
		}
	}
}
