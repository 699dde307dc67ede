package app

import "strings"

// alike maps characters to one that they are easily taken for.
var alike = strings.NewReplacer(
	"-", "", "_", "", ".", "", " ", "",
	"0", "o", "1", "l", "i", "l", "|", "l", "5", "s", "3", "e", "vv", "w", "rn", "m",
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x", "і", "l", "ѕ", "s", "ј", "j", "к", "k", "м", "m", "т", "t", "н", "h",
	"α", "a", "ο", "o", "ν", "v", "ι", "l", "κ", "k", "ρ", "p", "τ", "t", "υ", "u", "χ", "x", "ı", "l",
)

// skeleton is what is left of an id when case, hyphens and look-alike letters
// are taken away: two ids with one skeleton can be mistaken for each other
// (S141).
func skeleton(id string) string { return alike.Replace(strings.ToLower(id)) }
