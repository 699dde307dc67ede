package files

// SetHook has do called between any two things that are done to the disk.
func SetHook(do func(point string) error) { hook = do }

// Unhook undoes SetHook.
func Unhook() { hook = func(string) error { return nil } }

// FolderName is folderName.
func FolderName(text string) string { return folderName(text, map[string]bool{}) }
