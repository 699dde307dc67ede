package browser

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
)

var _ view.Surface = (*Session)(nil)

// Screen is what the owner sees and touches, nil when there is no live surface.
// gone is closed when it ends.
func (s *Session) Screen() (screen page.Screen, id string, gone <-chan struct{}) {
	o := s.current()
	if o == nil {
		return nil, "", nil
	}
	switch o.State() {
	case fleet.Lost, fleet.Closing, fleet.Closed:
		return nil, "", nil
	}
	return o.Browser().Screen(), o.ID(), o.Gone()
}

// errNoSurface is the error of an owner's step without a browser.
var errNoSurface = errors.New("the run has no browser")

// Taken implements view.Surface: the owner has control once the verb that runs is
// over.
func (s *Session) Taken(ctx context.Context) error {
	o := s.current()
	if o == nil || o.Fault() != nil {
		return errNoSurface
	}
	select {
	case s.page <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.owner.Store(true)
	o.Owner(true)
	<-s.page
	s.dialogs(o)
	return nil
}

// Released implements view.Surface: element ids are stale, and dialogs are nobody's
// again unless an interaction is open.
func (s *Session) Released() {
	if o := s.current(); o != nil {
		o.engine.Released()
		o.Owner(false)
		s.owner.Store(false)
		s.dialogs(o)
	}
	s.owner.Store(false)
}

// dialogs settles what becomes of dialogs that open outside of actions: they are
// the owner's while one has control or is asked for something.
func (s *Session) dialogs(o *opened) { o.Browser().Screen().OnDialog(s.dialogPolicy()) }

func (s *Session) dialogPolicy() page.DialogPolicy {
	if s.owner.Load() || s.questions.asking() {
		return page.DialogKeep
	}
	return page.DialogDismiss
}

// dismiss answers a dialog that was kept for an owner who is not asked any more: no
// verb could be carried out before that.
func (s *Session) dismiss(ctx context.Context, o *opened) {
	screen := o.Browser().Screen()
	if s.dialogPolicy() == page.DialogKeep || screen.Facts().Dialog == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dismissLimit)
	defer cancel()
	_ = screen.Answer(ctx, false, "") // somebody else did, or the page is gone
}

const dismissLimit = 2 * time.Second

// Sealed implements view.Surface.
func (s *Session) Sealed() []page.Ref { return s.seals.filled() }

// Upload implements view.Surface: room for one file of the owner's.
func (s *Session) Upload(_ context.Context, name string, size int64) (view.Upload, error) {
	if !s.o.Request.Uploads {
		return nil, view.ErrUploads
	}
	o := s.current()
	if o == nil || o.Fault() != nil {
		return nil, errNoSurface
	}
	if size < 0 || size > maxUpload {
		return nil, errBig
	}
	dir, err := room(o.Surface)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	name = lastElement(name)
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &ownerFile{f: f, dir: dir, path: filepath.Join(dir, name), left: size, uid: o.UID()}, nil
}

// An ownerFile is a file that an owner sends.
type ownerFile struct {
	f         *os.File
	dir, path string
	left      int64
	uid       int
}

// Write implements io.Writer. More than was announced is io.ErrShortWrite.
func (u *ownerFile) Write(p []byte) (int, error) {
	if int64(len(p)) > u.left {
		return 0, io.ErrShortWrite
	}
	n, err := u.f.Write(p)
	u.left -= int64(n)
	return n, err
}

// Path implements view.Upload.
func (u *ownerFile) Path() string { return u.path }

// Done implements view.Upload: the file is the browser's to read.
func (u *ownerFile) Done() error {
	var err error
	if u.left != 0 {
		err = io.ErrUnexpectedEOF
	}
	if u.uid != 0 {
		err = errors.Join(err, u.f.Chown(u.uid, u.uid))
	}
	return errors.Join(err, u.f.Close())
}

// Erase implements view.Upload.
func (u *ownerFile) Erase() {
	_ = u.f.Close()         // it may be closed already
	_ = os.RemoveAll(u.dir) // what is left goes with the surface's directory
}
