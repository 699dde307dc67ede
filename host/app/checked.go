package app

import (
	"os"
	"sync"
	"weak"

	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A CheckedModule is a module that passed its checks. It may be shared and must not be modified.
type CheckedModule struct {
	Wasm   []byte
	Module sandbox.Module
}

// checkedModules shares one copy of an installed module among all that hold it at the same time, so that a
// thousand runs that are due at once need memory for one module only.
type checkedModules struct {
	mu sync.Mutex // guards by
	by map[store.Digest]*checkedFile
}

type checkedFile struct {
	mu     sync.Mutex // held while the file is read
	module weak.Pointer[CheckedModule]
	file   os.FileInfo // as it was before it was read
}

// get returns the shared module, unless nobody holds it or the file was replaced. In that case it calls read.
func (ms *checkedModules) get(d store.Digest, path string,
	read func() (*CheckedModule, error)) (*CheckedModule, error) {
	ms.mu.Lock()
	f := ms.by[d]
	if f == nil {
		f = &checkedFile{}
		ms.by[d] = f
	}
	ms.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	file, noFile := os.Lstat(path)
	if m := f.module.Value(); m != nil && noFile == nil && os.SameFile(file, f.file) && file.Size() == f.file.Size() &&
		file.ModTime().Equal(f.file.ModTime()) {
		return m, nil
	}
	m, err := read()
	if err == nil && noFile == nil {
		f.module, f.file = weak.Make(m), file
	}
	return m, err
}
