package corpus

import "strings"

// Flags of path_open and of look-ups.
const (
	openCreate    = 1
	openDirectory = 2
	openTruncate  = 8
	follow        = 1

	rightsRead  = 1 << 1
	rightsWrite = 1<<1 | 1<<6 | 1<<8 | 1<<22
)

// Where control leaves the descriptors of MountPath and of the scratch
// directory.
const (
	mountAt   = 32
	scratchAt = 36
)

// Files has the path calls as instructions that leave an errno. A descriptor
// is the code that pushes it.
type Files struct{ *Connector }

var (
	mount   = Seq(I32(mountAt), Load(0))
	scratch = Seq(I32(scratchAt), Load(0))
	opened  = Seq(I32(resultAt), Load(0)) // by the last path_open
)

func (f Files) path(p string) Code {
	s := f.Text(p)
	return Seq(U32(s.Ptr), U32(s.Len))
}

func (f Files) open(fd Code, path string, flags int32, rights int64) Code {
	return Seq(fd, I32(follow), f.path(path), I32(flags), I64(rights), I64(rights), I32(0), I32(resultAt),
		Call(f.WASI("path_open", "iiiiiIIii>i")))
}

func (f Files) one(name string, fd Code, path string) Code {
	return Seq(fd, f.path(path), Call(f.WASI(name, "iii>i")))
}

func (f Files) stat(fd Code, path string) Code {
	return Seq(fd, I32(follow), f.path(path), I32(resultAt), Call(f.WASI("path_filestat_get", "iiiii>i")))
}

func (f Files) times(fd Code, path string) Code {
	return Seq(fd, I32(follow), f.path(path), I64(0), I64(0), I32(1<<1|1<<3),
		Call(f.WASI("path_filestat_set_times", "iiiiIIi>i")))
}

func (f Files) rename(fd Code, from string, to Code, name string) Code {
	return Seq(fd, f.path(from), to, f.path(name), Call(f.WASI("path_rename", "iiiiii>i")))
}

func (f Files) symlink(target string, fd Code, path string) Code {
	return Seq(f.path(target), fd, f.path(path), Call(f.WASI("path_symlink", "iiiii>i")))
}

func (f Files) link(fd Code, from string, to Code, path string) Code {
	return Seq(fd, I32(follow), f.path(from), to, f.path(path), Call(f.WASI("path_link", "iiiiiii>i")))
}

func (f Files) readlink(fd Code, path string) Code {
	return Seq(fd, f.path(path), I32(64), I32(64), I32(resultAt), Call(f.WASI("path_readlink", "iiiiii>i")))
}

// each asserts that attempt fails in both directories.
func each(attempt func(fd Code) Code) Code {
	return Seq(attempt(mount), Must(), attempt(scratch), Must())
}

// leaving are paths that leave any directory by themselves, or are not valid.
var leaving = []string{
	"..", "../", "../outside.txt", "./../outside.txt", "folder/../../outside.txt", "folder/../../elsewhere/other.txt",
	"../root/../outside.txt", "inside.txt/../../outside.txt", "/etc/passwd", "/data/inside.txt", "//etc/passwd", "/",
	"/proc/self/mem", "/dev/zero", "../outside.txt\x00", "inside.txt\x00.png", "\x00", "\xff\xfe",
	"folder/\xc0\xae\xc0\xae/outside.txt",
}

// linked are paths of Tree that leave their directory by a link.
var linked = []string{
	"escape", "escape/", "./escape", "folder/../escape", "folder/twice", "escape-folder/other.txt", "escape-folder/",
	"escape-parent/outside.txt", "escape-parent/root/inside.txt", "absolute", "absolute/", "loop", "loop/x",
}

// fileAttacks must achieve nothing: each attempt gets an errno; otherwise the guest
// traps, and the case fails.
func fileAttacks() []Case {
	var cases []Case
	add := func(name, rule, locals string, attack func(f Files) Code) {
		cases = append(cases, Case{Name: "files-" + name, Group: GroupFiles, Rule: rule, Want: Succeeded, Files: true,
			Wasm: connector(locals, func(c *Connector) Code {
				c.Manifest = FilesManifest
				f := Files{c}
				return c.Session(Seq(f.control(), attack(f)))
			})})
	}
	sweep := func(name, rule string, attempt func(f Files, fd Code, path string) Code) {
		add(name, rule, "", func(f Files) Code {
			var all Code
			for _, path := range leaving {
				all = Seq(all, each(func(fd Code) Code { return attempt(f, fd, path) }))
			}
			for _, path := range linked {
				all = Seq(all, attempt(f, mount, path), Must())
			}
			return all
		})
	}
	sweep("read-outside", "path confinement",
		func(f Files, fd Code, p string) Code { return f.open(fd, p, 0, rightsRead) })
	sweep("write-outside", "path confinement",
		func(f Files, fd Code, p string) Code { return f.open(fd, p, openTruncate, rightsWrite) })
	sweep("list-outside", "path confinement",
		func(f Files, fd Code, p string) Code { return f.open(fd, p, openDirectory, rightsRead) })
	sweep("stat-outside", "path confinement", func(f Files, fd Code, p string) Code { return f.stat(fd, p) })
	sweep("times-outside", "path confinement", func(f Files, fd Code, p string) Code { return f.times(fd, p) })
	sweep("mkdir-outside", "path confinement",
		func(f Files, fd Code, p string) Code { return f.one("path_create_directory", fd, p) })
	sweep("rmdir-outside", "path confinement",
		func(f Files, fd Code, p string) Code { return f.one("path_remove_directory", fd, p) })
	sweep("read-links", "links", func(f Files, fd Code, p string) Code { return f.readlink(fd, p) })
	sweep("make-symlinks", "links", func(f Files, fd Code, p string) Code { return f.symlink(p, fd, "new-link") })
	sweep("make-hard-links", "links", func(f Files, fd Code, p string) Code { return f.link(fd, p, fd, "new-link") })

	// the link is not followed before ".." is taken: nothing is there
	add("back-from-outside", "path confinement", "", func(f Files) Code {
		return f.refusedPaths([]string{"escape-folder/../outside.txt"},
			func(fd Code, p string) Code { return f.open(fd, p, 0, rightsRead) })
	})
	add("create-outside", "path confinement", "", func(f Files) Code {
		return f.refusedPaths([]string{"../new.txt", "/new.txt", "folder/../../new.txt", "escape-folder/new.txt",
			"escape-parent/new.txt",
			"new.txt/", "inside.txt/new.txt", "new\x00.txt", ""},
			func(fd Code, p string) Code { return f.open(fd, p, openCreate, rightsWrite) })
	})
	add("unlink-outside", "path confinement", "", func(f Files) Code {
		return f.refusedPaths([]string{"../outside.txt", "/etc/passwd", "escape-folder/other.txt",
			"escape-parent/outside.txt", "..", "."},
			func(fd Code, p string) Code { return f.one("path_unlink_file", fd, p) })
	})
	add("rename-outside", "path confinement", "", func(f Files) Code {
		out := f.refusedPaths([]string{"../stolen.txt", "/stolen.txt", "escape-folder/stolen.txt", "escape-parent/stolen.txt",
			"folder/../../stolen.txt"},
			func(fd Code, p string) Code { return f.rename(fd, "inside.txt", fd, p) })
		in := f.refusedPaths([]string{"../outside.txt", "/etc/passwd", "escape-folder/other.txt", "escape-parent/outside.txt",
			"folder/../../outside.txt"},
			func(fd Code, p string) Code { return f.rename(fd, p, fd, "taken.txt") })
		return Seq(out, in)
	})
	add("rename-across-mounts", "path confinement", "", func(f Files) Code {
		return Seq(f.rename(mount, "inside.txt", scratch, "moved.txt"), Must(),
			f.link(mount, "inside.txt", scratch, "moved.txt"), Must())
	})
	add("symlink-then-follow", "file descriptors", "", func(f Files) Code {
		return each(func(fd Code) Code {
			return Seq(f.symlink("../outside.txt", fd, "mine"), Must(), f.open(fd, "mine", 0, rightsRead))
		})
	})
	add("special-files", "special files", "", func(f Files) Code {
		return f.refusedPaths([]string{"fifo", "./fifo"}, func(fd Code, p string) Code {
			return Seq(f.open(fd, p, 0, rightsRead), Must(), f.open(fd, p, 0, rightsWrite))
		})
	})
	add("write-hard-linked", "links", "", func(f Files) Code {
		return f.refusedPaths([]string{"shared.txt"}, func(fd Code, p string) Code {
			return Seq(f.open(fd, p, 0, rightsWrite), Must(), f.open(fd, p, openTruncate, rightsWrite))
		})
	})
	add("path-sizes", "path confinement", "", func(f Files) Code {
		return f.refusedPaths([]string{strings.Repeat("a", 256), strings.Repeat("a", 5_000), strings.Repeat("a/", 65) + "b",
			strings.Repeat(strings.Repeat("a", 255)+"/", 17) + "b", strings.Repeat("a", 70_000)},
			func(fd Code, p string) Code { return f.open(fd, p, openCreate, rightsWrite) })
	})
	add("pointers", "pointer bounds", "", func(f Files) Code {
		call := f.WASI("path_open", "iiiiiIIii>i")
		at := func(fd Code, ptr, length, result uint32) Code {
			return Seq(fd, I32(0), U32(ptr), U32(length), I32(0), I64(rightsRead), I64(0), I32(0), U32(result), Call(call))
		}
		return each(func(fd Code) Code {
			return Seq(at(fd, ^uint32(0), 1, resultAt), Must(), at(fd, 0, ^uint32(0), resultAt), Must(),
				at(fd, ^uint32(0), ^uint32(0), ^uint32(0)))
		})
	})
	cases[len(cases)-1].Or, cases[len(cases)-1].Subtype = []string{Violation}, "abi_fault"
	add("descriptor-guessing", "file descriptors", "i", func(f Files) Code {
		read := f.WASI("fd_read", "iiii>i")
		try := Seq(Get(0), I32(0), I32(0), I32(resultAt), Call(read), Must())
		return Seq(Times(0, 0x10000, // 5 to 65540, then what looks negative
			Seq(Get(0), I32(4), Add, Set(0)), try, Seq(Get(0), I32(4), Sub, Set(0))),
			I32(-1), I32(0), I32(0), I32(resultAt), Call(read), Must(), I32(-1<<31), I32(0), I32(0),
			I32(resultAt), Call(read), Must())
	})
	add("handle-flood", "handles", "i", func(f Files) Code {
		return Seq(Times(0, 2_000, f.open(mount, "inside.txt", 0, rightsRead), Drop),
			f.open(mount, "inside.txt", 0, rightsRead), Must())
	})
	add("inode-flood", "quotas", "i", func(f Files) Code {
		name := f.Text("flood-0000")
		digit := func(at uint32, shift byte) Code { // one letter of the counter in base 16
			return Seq(U32(name.Ptr+at), Get(0), I32(int32(shift)), Op(0x76), I32(15), Op(0x71), I32('a'), Add, Store8(0))
		}
		open := Seq(mount, I32(0), U32(name.Ptr), U32(name.Len), I32(openCreate), I64(rightsWrite), I64(0),
			I32(0), I32(resultAt),
			Call(f.WASI("path_open", "iiiiiIIii>i")))
		// twice the quota of files; at least the last must be refused
		return Seq(Times(0, 20_000, digit(6, 12), digit(7, 8), digit(8, 4), digit(9, 0), open, Drop,
			opened, Call(f.WASI("fd_close", "i>i")), Drop), I32(0x7777), Set(0),
			digit(6, 12), digit(7, 8), digit(8, 4), digit(9, 0), open, Must())
	})
	add("sparse-file", "quotas", "", func(f Files) Code {
		size := f.WASI("fd_filestat_set_size", "iI>i")
		write := f.WASI("fd_pwrite", "iiiIi>i")
		one := f.Text("x")
		iovec := f.Words(one.Ptr, one.Len)
		return Seq(f.open(mount, "sparse", openCreate, rightsWrite), If(Unreachable),
			opened, I64(1<<40), Call(size), Must(), opened, I64(-1), Call(size), Must(),
			opened, U32(iovec.Ptr), I32(1), I64(1<<40), I32(resultAt+8), Call(write), Must(),
			opened, U32(iovec.Ptr), I32(1), I64(-1), I32(resultAt+8), Call(write), Must())
	})
	add("directory-depth", "path confinement", "", func(f Files) Code {
		var all Code
		for depth := 1; depth <= 70; depth++ {
			all = Seq(all, f.one("path_create_directory", mount, strings.TrimSuffix(strings.Repeat("d/", depth), "/")), Drop)
		}
		return Seq(all, f.one("path_create_directory", mount, strings.Repeat("d/", 69)+"e"), Must())
	})
	return cases
}

// control shows that the directory is there, without which every attack would fail for
// the wrong reason, and remembers which descriptor it is: the first two preopened ones
// are MountPath and the scratch directory, in either order. It leaves nothing open.
func (f Files) control() Code {
	remember := func(mount, scratch int32) Code {
		return Seq(I32(mountAt), I32(mount), Store(0), I32(scratchAt), I32(scratch), Store(0),
			opened, Call(f.WASI("fd_close", "i>i")), Drop)
	}
	return Block(
		f.open(I32(3), "inside.txt", 0, rightsRead), EqzI32, If(remember(3, 4), Br(1)),
		f.open(I32(4), "inside.txt", 0, rightsRead), EqzI32, If(remember(4, 3), Br(1)),
		Unreachable,
	)
}

// refusedPaths asserts that attempt fails for each path in both directories.
func (f Files) refusedPaths(paths []string, attempt func(fd Code, path string) Code) Code {
	var all Code
	for _, p := range paths {
		all = Seq(all, each(func(fd Code) Code { return attempt(fd, p) }))
	}
	return all
}
