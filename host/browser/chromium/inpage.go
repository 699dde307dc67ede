package chromium

import (
	"embed"
	"strings"
)

//go:embed inpage/*.js
var inpageFiles embed.FS

// worldName is that of the isolated world in each document: it sees the page's
// document, and the page's scripts see nothing of it (B117).
const worldName = "sluice"

// inpageSource is the one script that runs there. It is fixed: nothing of a request
// becomes source text, all of it crosses as arguments.
var inpageSource = readInpage()

func readInpage() string {
	entries, err := inpageFiles.ReadDir("inpage") // in order of their names
	if err != nil {
		panic(err) // it is part of the binary
	}
	var b strings.Builder
	b.WriteString("(() => {\n\"use strict\";\nif (Object.hasOwn(globalThis, \"sluice\")) return;\n")
	for _, e := range entries {
		text, err := inpageFiles.ReadFile("inpage/" + e.Name())
		if err != nil {
			panic(err)
		}
		b.Write(text)
	}
	b.WriteString("})()\n")
	return b.String()
}
