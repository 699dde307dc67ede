package run

import (
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// A member is a member of a record.
type member = strictjson.Member

func appendQuoted(b, text []byte) []byte { return strictjson.AppendQuote(b, text) }

// field appends the value of a field that holds files: null, one file, or a list.
func (f *files) field(data []byte, x member, h *heldFiles) ([]byte, *Rejection) {
	name := string(x.Name)
	one := func(v member) *Rejection {
		file, bad := f.reference(v, h, name)
		if bad == nil {
			data = append(data, fileJSON(file)...)
			h.held = append(h.held, store.Held{Field: name, File: file})
		}
		return bad
	}
	switch x.Kind {
	case strictjson.KindNull:
		return append(data, "null"...), nil
	case strictjson.KindObject:
		return data, one(x)
	case strictjson.KindArray:
		data = append(data, '[')
		n := 0
		for item := range x.Tree().Items() {
			if n++; n > 1 {
				data = append(data, ',')
			}
			if len(h.held) == abi.MaxFilesOfRecord || !item.Is(strictjson.KindObject) {
				return nil, &Rejection{Code: rejectFile, Field: name}
			}
			if bad := one(member{Kind: strictjson.KindObject, Value: item.Raw}); bad != nil {
				return nil, bad
			}
		}
		return append(data, ']'), nil
	}
	return nil, &Rejection{Code: rejectFile, Field: name}
}
