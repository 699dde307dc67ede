package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// An object reads the members of one JSON object of a request. The first failure is kept in bad,
// which all objects of a request share. A null member counts as missing.
type object struct {
	members map[string]strictjson.Value
	path    string // prefix of member names in messages, with a dot
	bad     *problem
}

// A problem is what is wrong with a request; Code "" means nothing.
type problem struct{ code, message string }

func (p *problem) set(code, format string, args ...any) {
	if p.code == "" {
		p.code, p.message = code, fmt.Sprintf(format, args...)
	}
}

func newObject(v strictjson.Value, path string, bad *problem) object {
	o := object{members: map[string]strictjson.Value{}, path: path, bad: bad}
	for name, m := range v.Members() {
		if _, twice := o.members[name]; !twice {
			o.members[name] = m
		}
	}
	return o
}

// wrong refuses a member that is missing or of the wrong type.
func (o object) wrong(kind, name string) {
	o.bad.set("invalid_request", "missing or invalid %s argument: %s", kind, o.path+name)
}

// refuse refuses a member because of its value.
func (o object) refuse(name, format string, args ...any) {
	o.bad.set("invalid_request", "%s: %s", o.path+name, fmt.Sprintf(format, args...))
}

func (o object) has(name string) bool { return !o.members[name].Absent() }

// text reads a string of at most most bytes, "" if it is missing.
func (o object) text(name string, most int) string {
	if !o.has(name) {
		return ""
	}
	s, ok := o.members[name].Text()
	if !ok {
		o.wrong("string", name)
		return ""
	}
	if len(s) > most {
		o.refuse(name, "at most %d bytes", most)
		return ""
	}
	return s
}

// must reads a text that may not be blank.
func (o object) must(name string, most int) string {
	s := o.text(name, most)
	if strings.TrimSpace(s) == "" {
		o.wrong("string", name)
	}
	return s
}

// textp reads a text that may be empty, nil if it is missing.
func (o object) textp(name string, most int) *string {
	if !o.has(name) {
		return nil
	}
	s := o.text(name, most)
	return &s
}

// word reads one of several words; the first is the default.
func (o object) word(name string, words ...string) string {
	if !o.has(name) {
		return words[0]
	}
	s, ok := o.members[name].Text()
	if !ok {
		o.wrong("string", name)
		return words[0]
	}
	if !slices.Contains(words, s) {
		o.refuse(name, "one of %s", strings.Join(words, ", "))
		return words[0]
	}
	return s
}

func (o object) flag(name string, otherwise bool) bool {
	if b := o.flagp(name); b != nil {
		return *b
	}
	return otherwise
}

func (o object) flagp(name string) *bool {
	if !o.has(name) {
		return nil
	}
	b, ok := o.members[name].Bool()
	if !ok {
		o.wrong("boolean", name)
		return nil
	}
	return &b
}

func (o object) floatp(name string) *float64 {
	if !o.has(name) {
		return nil
	}
	f, ok := o.members[name].Float64()
	if !ok || math.IsInf(f, 0) || math.IsNaN(f) {
		o.wrong("number", name)
		return nil
	}
	return &f
}

func (o object) float(name string, otherwise float64) float64 {
	if f := o.floatp(name); f != nil {
		return *f
	}
	return otherwise
}

// intp reads a whole number from 0 that a float64 represents exactly, nil if it is missing.
func (o object) intp(name string) *int {
	if !o.has(name) {
		return nil
	}
	n, ok := o.members[name].SafeInteger()
	if !ok || n < 0 {
		o.wrong("integer", name)
		return nil
	}
	i := int(n)
	return &i
}

// clamped reads a number and moves it to the nearest bound.
func (o object) clamped(name string, otherwise, least, most int) int {
	return int(clamp(o.float(name, float64(otherwise)), float64(least), float64(most)))
}

// millis reads a clamped duration in milliseconds.
func (o object) millis(name string, otherwise, least, most int) time.Duration {
	return time.Duration(o.clamped(name, otherwise, least, most)) * time.Millisecond
}

// object reads a member that is an object. ok is false if it is missing or wrong.
func (o object) object(name string) (in object, ok bool) {
	if !o.has(name) {
		return in, false
	}
	v := o.members[name]
	if !v.Is(strictjson.KindObject) {
		o.wrong("object", name)
		return in, false
	}
	return newObject(v, o.path+name+".", o.bad), true
}

// items reads an array of at most most values, nil if it is missing.
func (o object) items(name string, most int) []strictjson.Value {
	if !o.has(name) {
		return nil
	}
	v := o.members[name]
	if !v.Is(strictjson.KindArray) {
		o.wrong("array", name)
		return nil
	}
	var out []strictjson.Value
	for item := range v.Items() {
		if len(out) == most {
			o.refuse(name, "at most %d items", most)
			return nil
		}
		out = append(out, item)
	}
	return out
}

// texts reads an array of strings that are not blank.
func (o object) texts(name string, most, bytes int) []string {
	var out []string
	for i, v := range o.items(name, most) {
		s, ok := v.Text()
		if !ok || strings.TrimSpace(s) == "" || len(s) > bytes {
			o.wrong("string", fmt.Sprintf("%s[%d]", name, i))
			return nil
		}
		out = append(out, s)
	}
	return out
}

// words reads an array of distinct words from a list, nil if it is missing.
func (o object) words(name string, words ...string) []string {
	if !o.has(name) {
		return nil
	}
	out := o.texts(name, len(words), 64)
	for i, s := range out {
		if !slices.Contains(words, s) || slices.Contains(out[:i], s) {
			o.refuse(name, "some of %s, each once", strings.Join(words, ", "))
			return nil
		}
	}
	if len(out) == 0 {
		o.refuse(name, "at least one of %s", strings.Join(words, ", "))
	}
	return out
}
