package guest

// BrowserCall is the call function of the browser binding (section 5.1).
func (r *Run) BrowserCall(request []byte) ([]byte, error) { return r.call(r.port.browser, request) }

// ReadHandle reads from a handle that a reply named (G10): 0 bytes without an
// error is its end.
func (r *Run) ReadHandle(handle int32, dst []byte) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.flush(); err != nil {
		return 0, err
	}
	n, err := r.port.read(handle, dst)
	return n, r.noticed(err)
}

// CloseHandle closes a handle.
func (r *Run) CloseHandle(handle int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return r.ended
	}
	return r.noticed(r.port.close(handle))
}
