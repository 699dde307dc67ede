package engine

import (
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/browser/page"
)

// own maps verbs to the parsers of their own members.
var own = map[Verb]func(*parser){
	Open:       (*parser).open,
	Navigate:   (*parser).navigate,
	Click:      (*parser).click,
	Type:       (*parser).typed,
	Fill:       (*parser).typed,
	Clear:      func(p *parser) { p.r.Type.Clear = true },
	Press:      (*parser).press,
	Select:     (*parser).choose,
	Check:      (*parser).check,
	Adjust:     (*parser).adjust,
	Scroll:     (*parser).scroll,
	Drag:       (*parser).drag,
	Upload:     (*parser).upload,
	Wait:       (*parser).wait,
	Expect:     (*parser).expect,
	Extract:    (*parser).extract,
	Snapshot:   (*parser).snapshot,
	Screenshot: (*parser).screenshot,
	Cookies:    (*parser).cookies,
	Mark:       func(p *parser) { p.r.Mark = MarkArgs{p.must("phase", maxName), p.flag("done", false)} },
}

func (p *parser) navigate() {
	a := NavigateArgs{URL: p.text("url", maxURL), Until: p.word("until", "dom", "commit", "load")}
	switch url, history := p.has("url"), p.has("history"); {
	case url && history:
		p.refuse("url", "url or history, not both")
	case history:
		a.History = p.word("history", "back", "forward", "reload")
	default:
		a.URL = p.must("url", maxURL)
	}
	if o, ok := p.object.object("http_auth"); ok {
		if a.URL == "" {
			p.refuse("http_auth", "a login is for a url")
		}
		a.Auth = &HTTPAuth{Username: secretValue(o, "username"), Password: secretValue(o, "password")}
	}
	p.r.Navigate = a
}

// secretValue reads a value that is given in plain text or as a handle.
func secretValue(in object, name string) Value {
	o, ok := in.object(name)
	if !ok {
		in.wrong("object", name)
		return Value{}
	}
	switch plain, sealed := o.has("plain"), o.has("sealed"); {
	case plain == sealed:
		in.refuse(name, "exactly one of plain and sealed")
	case sealed:
		return Value{Sealed: o.must("sealed", maxName)}
	}
	return Value{Plain: o.text("plain", maxField)}
}

func (p *parser) click() {
	a := ClickArgs{Button: p.word("button", "left", "middle", "right"), Count: 1, Position: page.Point{X: 0.5, Y: 0.5}}
	if n := p.intp("count"); n != nil {
		if a.Count = *n; a.Count < 1 || a.Count > 3 {
			p.refuse("count", "1 to 3")
		}
	}
	if a.Hold = p.millis("hold_ms", 0, 0, 5000); a.Hold > 0 && a.Count > 1 {
		p.refuse("hold_ms", "one click is held, not several")
	}
	p.lengthen(10*time.Second + a.Hold)
	if p.has("modifiers") && len(p.items("modifiers", len(page.Modifiers))) > 0 {
		a.Modifiers = p.words("modifiers", page.Modifiers...)
	}
	if o, ok := p.object.object("position"); ok {
		a.Position = page.Point{X: o.float("x", 0.5), Y: o.float("y", 0.5)}
		if a.Position.X < 0 || a.Position.X > 1 || a.Position.Y < 0 || a.Position.Y > 1 {
			p.refuse("position", "fractions of the box, 0 to 1")
		}
	}
	p.r.Click = a
}

// handlePrefix is the prefix of every sealed handle.
const handlePrefix = "sluice-sealed-v1-"

func (p *parser) typed() {
	a := TypeArgs{Keys: p.word("mode", "fill", "keys") == "keys", Clear: p.flag("clear", true)}
	o, ok := p.object.object("value")
	if !ok {
		p.wrong("object", "value")
		return
	}
	switch plain, sealed := o.has("plain"), o.has("sealed"); {
	case plain == sealed:
		p.refuse("value", "exactly one of plain and sealed")
	case sealed:
		a.Sealed = o.must("sealed", maxName)
		if !a.Clear {
			p.refuse("clear", "a sealed value is never added to another one")
		}
	default:
		a.Plain = o.text("plain", maxText)
		if strings.Contains(a.Plain, handlePrefix) {
			p.bad.set("sealed_placement_denied", "value.plain: a sealed handle is no plain text")
		}
	}
	p.r.Type = a
}

func (p *parser) press() {
	a := PressArgs{Count: 1, Chords: strings.Fields(p.must("keys", maxField))}
	if len(a.Chords) > maxChords {
		p.refuse("keys", "at most %d chords", maxChords)
		return
	}
	for _, c := range a.Chords {
		if _, err := page.ParseChord(c); err != nil {
			p.refuse("keys", "%.40q: %s", c, err)
		}
	}
	if n := p.intp("count"); n != nil {
		if a.Count = *n; a.Count < 1 || a.Count > maxPresses {
			p.refuse("count", "1 to %d", maxPresses)
		}
	}
	p.r.Press = a
}

func (p *parser) choose() {
	switch one, many := p.has("option"), p.has("options"); {
	case one && many:
		p.refuse("options", "option or options, not both")
	case many:
		p.chooseMany()
	default:
		o, ok := p.object.object("option")
		if !ok {
			p.wrong("object", "option")
			return
		}
		p.r.Select = readChosen(o)
	}
}

// maxChosen bounds the options that one select chooses.
const maxChosen = 100

func (p *parser) chooseMany() {
	p.r.Select.Many = []SelectArgs{}
	for i, v := range p.items("options", maxChosen) {
		if !v.Is(strictjson.KindObject) {
			p.wrong("object", at("options", i))
			return
		}
		p.r.Select.Many = append(p.r.Select.Many, readChosen(newObject(v, at("options", i)+".", p.bad)))
	}
}

// readChosen reads one option.
func readChosen(o object) SelectArgs {
	a := SelectArgs{ID: o.textp("id", maxField), Label: o.textp("label", maxField), Index: o.intp("index")}
	given := 0
	for _, is := range []bool{a.ID != nil, a.Label != nil, a.Index != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		o.refuse("id", "exactly one of id, label, index")
	}
	return a
}

func (p *parser) check() {
	b := p.flagp("checked")
	if b == nil {
		p.wrong("boolean", "checked")
		return
	}
	p.r.Check = *b
}

func (p *parser) adjust() {
	a := AdjustArgs{Tolerance: p.float("tolerance", 0), MaxAttempts: p.clamped("max_attempts", 3, 1, 4),
		WidenTo: p.floatp("widen_tolerance_to")}
	v := p.floatp("value")
	if v == nil {
		p.wrong("number", "value")
		return
	}
	a.Value = *v
	if a.Tolerance < 0 {
		p.refuse("tolerance", "not below 0")
	}
	if a.WidenTo != nil && *a.WidenTo < a.Tolerance {
		p.refuse("widen_tolerance_to", "not below tolerance")
	}
	if a.Modes = p.words("modes", "semantic", "gesture", "coordinate"); a.Modes == nil {
		a.Modes = []string{"semantic", "gesture", "coordinate"}
	}
	p.r.Adjust = a
}

func (p *parser) scroll() {
	a := ScrollArgs{Within: target(p.object, "within", 1), Amount: clamp(p.float("amount", 0.7), 0.1, 1),
		Max: p.clamped("max_scrolls", 10, 1, 50)}
	if (p.r.Target != nil) == p.has("direction") && p.bad.code == "" {
		p.refuse("direction", "exactly one of target and direction")
	}
	if p.has("direction") {
		a.Direction = p.word("direction", "down", "up", "left", "right")
	}
	p.r.Scroll = a
}

// maxDrag bounds a drag, in CSS pixels in either direction.
const maxDrag = 10_000

func (p *parser) drag() {
	to := target(p.object, "to", 1)
	by, moved := p.object.object("by")
	switch {
	case (to != nil) == moved && p.bad.code == "":
		p.refuse("to", "exactly one of to and by")
	case moved:
		p.r.Drag.By = &page.Point{X: clamp(by.float("x", 0), -maxDrag, maxDrag),
			Y: clamp(by.float("y", 0), -maxDrag, maxDrag)}
	}
	p.r.Drag.To = to
}

// maxFiles bounds the files of one upload.
const maxFiles = 20

func (p *parser) upload() {
	items := p.items("files", maxFiles)
	if len(items) == 0 {
		p.wrong("array", "files")
	}
	for i, v := range items {
		if !v.Is(strictjson.KindObject) {
			p.wrong("object", at("files", i))
			return
		}
		p.r.Upload = append(p.r.Upload, file(newObject(v, at("files", i)+".", p.bad)))
	}
}

func file(o object) File {
	f := File{Path: o.text("path", maxPath), Name: o.text("name", 255)}
	if n := o.intp("handle"); n != nil {
		f.Handle = uint32(min(*n, 1<<32-1)) // #nosec G115 -- bounded here, and no handle is that large
	}
	switch {
	case (f.Path == "") == !o.has("handle"):
		o.refuse("path", "exactly one of path and handle")
	case f.Handle == 0 && f.Path == "":
		o.wrong("integer", "handle")
	case f.Path != "" && (!strings.HasPrefix(f.Path, "/") || strings.ContainsRune(f.Path, 0)):
		o.refuse("path", "an absolute path")
	case f.Path == "" && f.Name == "":
		o.wrong("string", "name")
	case f.Name != "" && !plainName(f.Name):
		o.refuse("name", "the name of a file, without a path")
	}
	return f
}

// plainName reports whether name is a single path element without control characters.
func plainName(name string) bool {
	return name != "." && name != ".." &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || r < ' ' || r == 0x7f })
}
