package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// SQLite checks for interrupts every thousand steps of its virtual machine, but never during a call of a function. So
// values are short, the steps and calls of a statement are limited, and every function must be linear in the length of
// its arguments: those that compare each position of one text with another text are replaced, limited, or forbidden.
const (
	maxValue     = 2 << 20 // bytes of a value or row: a record has at most half
	maxSteps     = 7000    // of the virtual machine, in a compiled statement; each may take time by a value's length
	maxCalls     = 250     // of functions, in the text of a statement
	maxArguments = 100     // of a function
	maxPattern   = 200     // bytes of a pattern for LIKE and GLOB
	maxSet       = 1000    // characters to trim
)

// allowed lists the functions that a statement may call. They access nothing outside the statement and take linear
// time. So it has no regexp, decimal_mul, json_patch, unhex or json_pretty, and nothing that a later version of the
// library may add.
var allowed = func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(`
		abs acos acosh asin asinh atan atan2 atanh avg base64 ceil ceiling changes char coalesce concat concat_ws cos cosh count cume_dist
		current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob group_concat hex if
		ifnull iif instr json json_array json_array_length json_each json_error_position json_extract json_group_array json_group_object
		json_insert json_object json_quote json_remove json_replace json_set json_tree json_type json_valid jsonb jsonb_array jsonb_extract
		jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_remove jsonb_replace jsonb_set julianday lag last_insert_rowid
		last_value lead length like likelihood likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif octet_length
		percent_rank pi pow power printf quote radians random randomblob rank replace round row_number rtrim sign sin sinh soundex
		sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total total_changes trim trunc typeof
		unicode unixepoch unlikely upper zeroblob -> ->>`) {
		out[name] = true
	}
	return out
}()

// bounded replaces functions of db. during returns the context of the running statement.
func bounded(db *sqlite3.Conn, during func() context.Context) error {
	flags := sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	for name, f := range map[string]struct {
		args int
		do   sqlite3.ScalarFunction
	}{
		"instr": {2, instr}, "replace": {3, replace},
		"trim": {2, trim(strings.TrimFunc, during)}, "ltrim": {2, trim(strings.TrimLeftFunc, during)},
		"rtrim": {2, trim(strings.TrimRightFunc, during)}, "like": {-1, matching(likes, during)},
		"glob": {2, matching(globs, during)},
	} {
		if err := db.CreateFunction(name, f.args, flags, f.do); err != nil {
			return err
		}
	}
	return nil
}

// null reports whether an argument is NULL, and then sets the result to NULL.
func null(ctx sqlite3.Context, args []sqlite3.Value) bool {
	for _, a := range args {
		if a.Type() == sqlite3.NULL {
			ctx.ResultNull()
			return true
		}
	}
	return false
}

// instr returns the position of one text in another, in characters from 1, or in bytes for two blobs.
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

// matching implements LIKE or GLOB. The arguments are a pattern, a text and, for LIKE, an optional escape character.
func matching(w wildcard, during func() context.Context) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		if len(args) < 2 || len(args) > 3 {
			ctx.ResultError(errors.New("wrong number of arguments to function like()"))
			return
		}
		if null(ctx, args) {
			return
		}
		w, pattern := w, args[0].RawText()
		if len(args) == 3 {
			escape := args[2].Text()
			if utf8.RuneCountInString(escape) != 1 {
				ctx.ResultError(errors.New("ESCAPE expression must be a single character"))
				return
			}
			w.escape, _ = utf8.DecodeRuneInString(escape)
		}
		if len(pattern) > maxPattern {
			ctx.ResultError(fmt.Errorf("a pattern may have at most %d bytes", maxPattern))
			return
		}
		ok, err := w.match(during(), pattern, args[1].RawText())
		if err != nil {
			ctx.ResultError(sqlite3.INTERRUPT)
			return
		}
		ctx.ResultBool(ok)
	}
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
	if len(by) > len(old) && strings.Count(text, old)*(len(by)-len(old)) > maxValue-len(text) {
		ctx.ResultError(sqlite3.TOOBIG)
		return
	}
	ctx.ResultText(strings.ReplaceAll(text, old, by))
}

func trim(cut func(string, func(rune) bool) string, during func() context.Context) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		if null(ctx, args) {
			return
		}
		set := args[1].Text()
		if len(set) > maxSet {
			ctx.ResultError(fmt.Errorf("at most %d bytes can be trimmed", maxSet))
			return
		}
		in := map[rune]bool{} // lookups take the same time for any size
		for _, r := range set {
			in[r] = true
		}
		steps, over := 0, false
		text := cut(args[0].Text(), func(r rune) bool {
			steps++
			over = over || steps%lookEvery == 0 && during().Err() != nil
			return in[r] && !over
		})
		if over {
			ctx.ResultError(sqlite3.INTERRUPT)
			return
		}
		ctx.ResultText(text)
	}
}
