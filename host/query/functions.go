package query

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// A statement is interrupted between two of SQLite's steps, and never within a call of a
// function. So no function may take longer than its arguments are long: those of SQLite that
// compare each place of a text with all of another are replaced, or bounded, or forbidden.
const (
	maxPattern = 200  // bytes of a pattern for LIKE and GLOB
	maxSet     = 1000 // characters to trim
)

func bounded(db *sqlite3.Conn) error {
	db.Limit(sqlite3.LIMIT_LIKE_PATTERN_LENGTH, maxPattern)
	flags := sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	for name, f := range map[string]struct {
		args int
		do   sqlite3.ScalarFunction
	}{
		"instr": {2, instr}, "replace": {3, replace},
		"trim": {2, trim(strings.TrimFunc)}, "ltrim": {2, trim(strings.TrimLeftFunc)}, "rtrim": {2, trim(strings.TrimRightFunc)},
	} {
		if err := db.CreateFunction(name, f.args, flags, f.do); err != nil {
			return err
		}
	}
	return nil
}

// null sets the result to NULL if an argument is.
func null(ctx sqlite3.Context, args []sqlite3.Value) bool {
	for _, a := range args {
		if a.Type() == sqlite3.NULL {
			ctx.ResultNull()
			return true
		}
	}
	return false
}

// instr is where a text begins in another, in characters from 1; in bytes of two blobs.
func instr(ctx sqlite3.Context, args ...sqlite3.Value) {
	if null(ctx, args) {
		return
	}
	if args[0].Type() == sqlite3.BLOB && args[1].Type() == sqlite3.BLOB {
		ctx.ResultInt64(int64(bytes.Index(args[0].Blob(nil), args[1].Blob(nil)) + 1))
		return
	}
	text := args[0].Text()
	at := strings.Index(text, args[1].Text())
	if at > 0 {
		at = utf8.RuneCountInString(text[:at])
	}
	ctx.ResultInt64(int64(at + 1))
}

func replace(ctx sqlite3.Context, args ...sqlite3.Value) {
	if null(ctx, args) {
		return
	}
	text, old, by := args[0].Text(), args[1].Text(), args[2].Text()
	if old == "" {
		ctx.ResultText(text)
		return
	}
	if len(by) > len(old) && strings.Count(text, old)*(len(by)-len(old)) > maxAnswer-len(text) {
		ctx.ResultError(sqlite3.TOOBIG)
		return
	}
	ctx.ResultText(strings.ReplaceAll(text, old, by))
}

func trim(cut func(string, func(rune) bool) string) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		if null(ctx, args) {
			return
		}
		set := args[1].Text()
		if len(set) > maxSet {
			ctx.ResultError(fmt.Errorf("at most %d bytes can be trimmed", maxSet))
			return
		}
		ctx.ResultText(cut(args[0].Text(), func(r rune) bool { return strings.ContainsRune(set, r) }))
	}
}
