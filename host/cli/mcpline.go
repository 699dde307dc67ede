package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
)

// maxID is the longest id of a message, in bytes, that is looked for in one that is too long.
const maxID = 256

// errTooLong reports a line that is longer than maxMessage.
var errTooLong = errors.New("the message is too long")

// readMessage returns the next line. One that is longer than maxMessage is read to its end and not kept: then the error
// is errTooLong, and id the one to answer it by, or nil.
func readMessage(r *bufio.Reader) (line []byte, id json.RawMessage, err error) {
	var finder *idFinder
	for {
		piece, err := r.ReadSlice('\n')
		if finder == nil && len(line)+len(piece) > maxMessage+len("\n") {
			finder = &idFinder{}
			finder.read(line)
			line = nil
		}
		if finder != nil {
			finder.read(piece)
		} else {
			line = append(line, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case finder != nil:
			return nil, finder.found(), errTooLong // an error of the reader comes again
		case len(line) > 0:
			return line, nil, nil
		default:
			return nil, nil, err
		}
	}
}

// An idFinder finds the id of a message without keeping the message.
type idFinder struct {
	depth           int
	inText, escaped bool
	word            []byte // of a name or a value of the message's own object, up to maxID
	name            string // before word
	id              []byte
}

func (f *idFinder) read(piece []byte) {
	for _, c := range piece {
		switch {
		case f.inText:
			f.inText, f.escaped = c != '"' || f.escaped, c == '\\' && !f.escaped
		case c == '"':
			f.inText = true
		case c == '{', c == '[':
			if f.depth++; f.depth == 1 {
				continue
			}
		case c == '}', c == ']':
			if f.depth--; f.depth == 0 {
				f.end()
			}
		case f.depth == 1 && c == ':':
			f.name, f.word = string(f.word), nil
			continue
		case f.depth == 1 && c == ',':
			f.end()
			continue
		}
		if f.depth == 1 && len(f.word) <= maxID {
			f.word = append(f.word, c)
		}
	}
}

// end ends a value.
func (f *idFinder) end() {
	if string(bytes.TrimSpace([]byte(f.name))) == `"id"` {
		f.id = bytes.TrimSpace(f.word)
	}
	f.name, f.word = "", nil
}

// found returns the id if it is a string or a number, otherwise nil.
func (f *idFinder) found() json.RawMessage {
	if len(f.id) == 0 || len(f.id) > maxID || !json.Valid(f.id) || bytes.ContainsAny(f.id[:1], "{[tfn") {
		return nil
	}
	return f.id
}
