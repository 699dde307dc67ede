package corpus

// A TreeEntry is one thing that a run of GroupFiles finds on disk.
type TreeEntry struct {
	Path    string // below a fresh directory; folders come before their contents
	Kind    TreeKind
	Content string // of a file; of a link what it points to, for a hard link a path of Tree
}

// A TreeKind is what a TreeEntry is.
type TreeKind string

const (
	TreeFolder   TreeKind = "folder"
	TreeFile     TreeKind = "file"
	TreeSymlink  TreeKind = "symlink"
	TreeHardLink TreeKind = "hard link"
	TreeFIFO     TreeKind = "fifo" // left out where the system has none
)

// TreeRoot is the folder of Tree that the owner approves as MountPath.
const TreeRoot = "root"

// Tree is built before a case with Files runs. Afterwards everything outside
// of TreeRoot must be as it was, and nothing may have been added there.
func Tree() []TreeEntry {
	return []TreeEntry{
		{"outside.txt", TreeFile, "not for connectors"},
		{"elsewhere", TreeFolder, ""},
		{"elsewhere/other.txt", TreeFile, "not for connectors either"},
		{TreeRoot, TreeFolder, ""},
		{TreeRoot + "/inside.txt", TreeFile, "for connectors"},
		{TreeRoot + "/folder", TreeFolder, ""},
		{TreeRoot + "/folder/deep.txt", TreeFile, "for connectors too"},
		{TreeRoot + "/escape", TreeSymlink, "../outside.txt"},
		{TreeRoot + "/escape-folder", TreeSymlink, "../elsewhere"},
		{TreeRoot + "/escape-parent", TreeSymlink, ".."},
		{TreeRoot + "/absolute", TreeSymlink, "/etc/passwd"},
		{TreeRoot + "/folder/twice", TreeSymlink, "../escape"},
		{TreeRoot + "/loop", TreeSymlink, "loop"},
		{TreeRoot + "/shared.txt", TreeHardLink, "outside.txt"},
		{TreeRoot + "/fifo", TreeFIFO, ""},
	}
}
