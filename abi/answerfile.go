package abi

import (
	"encoding/base64"
	"errors"
	"net/url"
	"path"
	"strings"
)

// FormatFile is the format of a field of a question whose answer is a file.
const FormatFile = "file"

// MaxAnswerFile is how large a file may be that a question is answered with, in bytes.
const MaxAnswerFile = 512 * KiB

// An AnswerFile is a file that an owner answered a question with. On the wire it is a
// text, data:MEDIA;name=NAME;base64,DATA, in which NAME is percent-encoded.
type AnswerFile struct {
	Name  string // the last element of its path, at most 255 bytes; "" is not known
	Media string // as whoever gave it says; "" is not known
	Data  []byte
}

// ErrAnswerFile is of a text that is no file as AnswerFile has it.
var ErrAnswerFile = errors.New("no file: want data:MEDIA;name=NAME;base64,DATA of at most 512 KiB")

// String is the file as a text.
func (f AnswerFile) String() string {
	head := "data:" + f.Media
	if f.Name != "" {
		head += ";name=" + url.PathEscape(f.Name)
	}
	return head + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
}

// ParseAnswerFile reads a file from its text; ErrAnswerFile.
func ParseAnswerFile(text string) (f AnswerFile, err error) {
	head, data, ok := strings.Cut(text, ",")
	head, encoded := strings.CutSuffix(head, ";base64")
	head, scheme := strings.CutPrefix(head, "data:")
	if !ok || !encoded || !scheme || len(head) > 1024 || base64.StdEncoding.DecodedLen(len(data)) > MaxAnswerFile+3 {
		return f, ErrAnswerFile
	}
	for i, part := range strings.Split(head, ";") {
		if name, named := strings.CutPrefix(part, "name="); named {
			if name, err = url.PathUnescape(name); err != nil {
				return f, ErrAnswerFile
			}
			f.Name = Cut(path.Base("/"+strings.ReplaceAll(Clean(name), `\`, "/")), 255)
			if f.Name == "/" || f.Name == "." || f.Name == ".." {
				f.Name = ""
			}
		} else if i == 0 {
			f.Media = Clean(part)
		}
	}
	if f.Data, err = base64.StdEncoding.DecodeString(data); err != nil || len(f.Data) > MaxAnswerFile {
		return AnswerFile{}, ErrAnswerFile
	}
	return f, nil
}
