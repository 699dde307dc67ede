package strictjson

// inArray marks an open array in Scanner.levels.
const inArray = -1

// scan walks src once and returns the kind of the outermost value. It leaves a fault in
// s.err. Too much depth or too many values do not stop it, because a fault of higher
// precedence may follow.
func (s *Scanner) scan(src []byte) Kind {
	first := skipSpace(src, 0)
	if first == len(src) {
		s.fail(FaultJSON, first, "no value")
		return 0
	}
	var (
		kind   = kindOf(src[first])
		i      = first
		top    = inArray // of s.levels
		values = 0
		start  = 0 // of the latest member of the outermost object
	)
next:
	for {
		// A value begins at i, after optional white space.
		i = skipSpace(src, i)
		if i == len(src) {
			s.fail(FaultJSON, i, "unexpected end")
			return kind
		}
		if values++; values == s.MaxValues+1 && s.MaxValues > 0 {
			s.note(FaultValues, i, "too many values")
		}
		if len(s.levels) == 1 {
			start = i
		}
		switch c := src[i]; c {
		case '"':
			i, _ = s.str(src, i)
		case '{':
			top = len(s.names)
			s.open(top, i)
			i = skipSpace(src, i+1)
			if i == len(src) || src[i] != '}' {
				if i = s.member(src, i, top); i < 0 {
					return kind
				}
				continue next
			}
			top = s.close(top)
			i++
		case '[':
			top = inArray
			s.open(top, i)
			i = skipSpace(src, i+1)
			if i == len(src) || src[i] != ']' {
				continue next
			}
			top = s.close(top)
			i++
		case 't':
			i = s.literal(src, i, "true")
		case 'f':
			i = s.literal(src, i, "false")
		case 'n':
			i = s.literal(src, i, "null")
		default:
			i = s.number(src, i)
		}
		if i < 0 {
			return kind
		}
		// A value ends before i. Close the containers that end here.
		for len(s.levels) > 0 {
			if len(s.levels) == 1 && top != inArray {
				m := &s.members[len(s.members)-1]
				m.Value, m.Kind = src[start:i:i], kindOf(src[start])
			}
			i = skipSpace(src, i)
			if i == len(src) {
				s.fail(FaultJSON, i, "unexpected end")
				return kind
			}
			switch c := src[i]; {
			case c == ',' && top == inArray:
				i++
				continue next
			case c == ',':
				if i = s.member(src, skipSpace(src, i+1), top); i < 0 {
					return kind
				}
				continue next
			case c == ']' && top == inArray, c == '}' && top != inArray:
				top = s.close(top)
				i++
			default:
				s.fail(FaultJSON, i, "expected a comma or the end of the container")
				return kind
			}
		}
		if i = skipSpace(src, i); i < len(src) {
			s.fail(FaultJSON, i, "bytes after the value")
		}
		return kind
	}
}

// note records a fault that does not stop the scan, unless one of higher precedence is
// already recorded.
func (s *Scanner) note(f Fault, at int, reason string) {
	if s.err == nil || f < s.err.Fault {
		s.fail(f, at, reason)
	}
}

// open enters the container that begins at i.
func (s *Scanner) open(top, i int) {
	s.levels = append(s.levels, top)
	if len(s.levels) == MaxDepth+1 {
		s.note(FaultDepth, i, "nested too deep")
	}
}

// close leaves the innermost container, top, and returns the enclosing one.
func (s *Scanner) close(top int) int {
	if top != inArray {
		s.dropNames(top)
	}
	n := len(s.levels) - 1
	s.levels = s.levels[:n]
	if n == 0 {
		return inArray
	}
	return s.levels[n-1]
}

// member reads the name at i and the colon after it, for the object whose names begin at
// top, and returns the offset after the colon.
func (s *Scanner) member(src []byte, i, top int) int {
	if i == len(src) {
		return s.fail(FaultJSON, i, "unexpected end")
	}
	if src[i] != '"' {
		return s.fail(FaultJSON, i, "expected a member name")
	}
	end, plain := s.str(src, i)
	if end < 0 {
		return end
	}
	n, text := memberName{start: i + 1, end: end - 1}, src[i+1:end-1:end-1]
	if !plain {
		n.start = ^len(s.text)
		s.text = AppendString(s.text, src[i:end])
		n.end = len(s.text)
		text = s.text[^n.start:n.end:n.end]
	}
	if !s.addName(src, n, text, top) {
		return s.fail(FaultJSON, i, "repeated member name")
	}
	if len(s.levels) == 1 {
		s.addMember(text)
	}
	if end < len(src) && src[end] != ':' {
		end = skipSpace(src, end)
	}
	if end == len(src) {
		return s.fail(FaultJSON, end, "unexpected end")
	}
	if src[end] != ':' {
		return s.fail(FaultJSON, end, "expected a colon")
	}
	return end + 1
}

// addMember appends a member of the outermost object. Its other fields are set when the
// value ends.
func (s *Scanner) addMember(text []byte) {
	n := len(s.members)
	if n == cap(s.members) {
		s.members = append(s.members, Member{})
	}
	s.members = s.members[:n+1]
	s.members[n].Name = text
}

// literal reads true, false or null.
func (s *Scanner) literal(src []byte, i int, word string) int {
	for j := range len(word) {
		if i+j == len(src) {
			return s.fail(FaultJSON, i+j, "unexpected end")
		}
		if src[i+j] != word[j] {
			return s.fail(FaultJSON, i+j, "no such literal")
		}
	}
	return i + len(word)
}

// number reads a number. It also reports bytes with which no value can begin.
func (s *Scanner) number(src []byte, i int) int {
	if src[i] == '-' {
		i++
	}
	switch {
	case i < len(src) && src[i] == '0':
		i++
	default:
		if i = s.digits(src, i); i < 0 {
			return i
		}
	}
	if i < len(src) && src[i] == '.' {
		if i = s.digits(src, i+1); i < 0 {
			return i
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		return s.digits(src, i)
	}
	return i
}

// digits reads one or more digits.
func (s *Scanner) digits(src []byte, i int) int {
	from := i
	for i < len(src) && src[i]-'0' < 10 {
		i++
	}
	if i > from {
		return i
	}
	if i == len(src) {
		return s.fail(FaultJSON, i, "unexpected end")
	}
	return s.fail(FaultJSON, i, "unexpected character")
}

// skipSpace returns the offset of the first byte from i on that is not JSON white space, or
// the length of src.
func skipSpace(src []byte, i int) int {
	for i < len(src) && src[i] <= ' ' && isSpace(src[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t'
}
