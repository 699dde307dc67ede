package export

import "strings"

// FileName is a name without what file systems and headers make something of.
func FileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
			return r
		}
		return '_'
	}, name)
}
