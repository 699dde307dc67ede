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

// Screen returns the owner's access to the page, or nil if there is no live surface. gone is closed
// when the surface ends.
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

// errNoSurface is returned for an action of the owner without a browser.
var errNoSurface = errors.New("the run has no browser")

// Taken implements view.Surface. It gives the owner control once the running verb has ended.
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

// Released implements view.Surface. Element ids become stale, and dialogs are dismissed again
// unless an interaction is open.
func (s *Session) Released() {
	if o := s.current(); o != nil {
		o.engine.Released()
		o.Owner(false)
		s.owner.Store(false)
		s.dialogs(o)
	}
	s.owner.Store(false)
}

// dialogs sets what happens to dialogs outside of actions: they are kept while the owner has
// control or is asked for something.
func (s *Session) dialogs(o *opened) { o.Browser().Screen().OnDialog(s.dialogPolicy()) }

func (s *Session) dialogPolicy() page.DialogPolicy {
	if s.owner.Load() || s.questions.asking() {
		return page.DialogKeep
	}
	return page.DialogDismiss
}

// dismiss dismisses a dialog that was kept for an owner who is no longer asked, since no verb could
// run before that.
func (s *Session) dismiss(ctx context.Context, o *opened) {
	screen := o.Browser().Screen()
	if s.dialogPolicy() == page.DialogKeep || screen.Facts().Dialog == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dismissLimit)
	defer cancel()
	_ = screen.Answer(ctx, false, "") // it may be answered already, or the page gone
}

const dismissLimit = 2 * time.Second

// Sealed implements view.Surface.
func (s *Session) Sealed() []page.Ref { return s.seals.filled() }

// Upload implements view.Surface. It prepares one file of the owner.
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

// An ownerFile is a file that the owner sends.
type ownerFile struct {
	f         *os.File
	dir, path string
	left      int64
	uid       int
}

// Write implements io.Writer. It returns io.ErrShortWrite beyond the announced size.
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

// Done implements view.Upload. It makes the file readable for the browser.
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
	_ = u.f.Close()         // may be closed already
	_ = os.RemoveAll(u.dir) // what is left is removed with the surface's directory
}
