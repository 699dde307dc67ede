package main

import (
	"strings"

	ical "github.com/emersion/go-ical"
)

// A person is an organizer or attendee.
type person struct {
	Name   string `json:"name,omitempty"`
	Email  string `json:"email,omitempty"`
	Role   string `json:"role,omitempty"`
	Status string `json:"status,omitempty"`
	Type   string `json:"type,omitempty"`
}

func organizerOf(p ical.Props) any {
	if prop := p.Get(ical.PropOrganizer); prop != nil {
		return personOf(prop)
	}
	return nil
}

func attendeesOf(p ical.Props) []person {
	people := []person{}
	for _, prop := range p.Values(ical.PropAttendee) {
		if len(people) == maxPeople {
			break
		}
		one := personOf(&prop)
		one.Role = strings.ToLower(clean(prop.Params.Get(ical.ParamRole)))
		one.Status = strings.ToLower(clean(prop.Params.Get(ical.ParamParticipationStatus)))
		one.Type = strings.ToLower(clean(prop.Params.Get(ical.ParamCalendarUserType)))
		people = append(people, one)
	}
	return people
}

func personOf(prop *ical.Prop) person {
	address := clean(prop.Value)
	if len(address) >= 7 && strings.EqualFold(address[:7], "mailto:") {
		address = address[7:]
	} else if email := prop.Params.Get("EMAIL"); email != "" {
		address = clean(email)
	}
	return person{Name: clean(prop.Params.Get(ical.ParamCommonName)), Email: address}
}
