package signature

import "errors"

// What can be wrong. The wrapping error says which key, file or connector.
var (
	// ErrDamaged: the text is no signature or no key.
	ErrDamaged = errors.New("is damaged, or is none")
	// ErrOtherKey: the signature was made with another key than was asked for.
	ErrOtherKey = errors.New("is by another key")
	// ErrOtherModule: the signature is genuine and belongs to another module.
	ErrOtherModule = errors.New("is of another module")
	// ErrInvalid: neither; the module, the signature or its comment was changed.
	ErrInvalid = errors.New("does not match")
	// ErrPassword: the private key is sealed with another password.
	ErrPassword = errors.New("wrong password")
	// ErrNotSignable: a connector's id or version cannot stand in a comment.
	ErrNotSignable = errors.New("cannot be signed")
)
