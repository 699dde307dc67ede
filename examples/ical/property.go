package main

import (
	"strconv"
	"strings"

	ical "github.com/emersion/go-ical"
)

const (
	maxText   = 256 << 10 // of one text of a record
	maxPeople = 500
	maxList   = 200
)

// textOf returns a text property, unescaped; "" when there is none.
func textOf(props ical.Props, name string) string {
	p := props.Get(name)
	if p == nil {
		return ""
	}
	return clean(unescape(p.Value))
}

// listOf returns the texts of a property that may occur more than once, each a
// list.
func listOf(props ical.Props, name string) []string {
	list := []string{}
	for _, p := range props.Values(name) {
		for _, item := range splitList(p.Value) {
			if item = clean(unescape(item)); item != "" && len(list) < maxList {
				list = append(list, item)
			}
		}
	}
	return list
}

// splitList cuts at the commas that are not escaped.
func splitList(s string) []string {
	var items []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ',':
			items = append(items, s[start:i])
			start = i + 1
		}
	}
	return append(items, s[start:])
}

// unescape undoes \n, \, \; and \\. Anything else after a backslash stays: there
// are programs that write Windows paths as they are.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case 'n', 'N':
			b.WriteByte('\n')
		case ',', ';', '\\':
			b.WriteByte(s[i+1])
		default:
			b.WriteByte('\\')
			continue
		}
		i++
	}
	return b.String()
}

// clean drops NUL, which not every store can hold, and bounds a text.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return strings.TrimSpace(s)
}

func lowerOf(props ical.Props, name string) string { return strings.ToLower(textOf(props, name)) }

func numberOf(props ical.Props, name string) int {
	n, err := strconv.Atoi(textOf(props, name))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// A person is an organizer or attendee.
type person struct {
	Name   string `json:"name,omitempty"`
	Email  string `json:"email,omitempty"`
	Role   string `json:"role,omitempty"`
	Status string `json:"status,omitempty"`
	Type   string `json:"type,omitempty"`
}

func organizerOf(props ical.Props) *person {
	p := props.Get(ical.PropOrganizer)
	if p == nil {
		return nil
	}
	one := personOf(p)
	return &one
}

func attendeesOf(props ical.Props) []person {
	people := []person{}
	for _, p := range props.Values(ical.PropAttendee) {
		if len(people) == maxPeople {
			break
		}
		one := personOf(&p)
		one.Role = strings.ToLower(p.Params.Get(ical.ParamRole))
		one.Status = strings.ToLower(p.Params.Get(ical.ParamParticipationStatus))
		one.Type = strings.ToLower(p.Params.Get(ical.ParamCalendarUserType))
		people = append(people, one)
	}
	return people
}

func personOf(p *ical.Prop) person {
	address := clean(p.Value)
	if len(address) >= 7 && strings.EqualFold(address[:7], "mailto:") {
		address = address[7:]
	} else if email := p.Params.Get("EMAIL"); email != "" {
		address = clean(email)
	}
	return person{Name: clean(p.Params.Get(ical.ParamCommonName)), Email: address}
}
