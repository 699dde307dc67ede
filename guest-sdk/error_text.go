package guest

import "github.com/sluicehost/sluice/abi"

// newError reads the error text of a failed call. A text that is no error
// object leaves the number alone.
func newError(errno abi.Errno, text []byte) *Error {
	e := &Error{Errno: errno}
	v, err := parseObject(text)
	if err != nil {
		return e
	}
	for name, m := range v.Members() {
		switch name {
		case "code":
			e.Code, _ = m.Text()
		case "message":
			e.Message, _ = m.Text()
		case "detail":
			e.Detail = m.Raw
		}
	}
	return e
}
