package hostile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/tests/hostile/corpus"
)

// writeCorpus is the argument that makes the test binary write the corpus to a
// directory: NAME.wasm for every case, and a list of the cases. A separate process does
// it, so that the memory for it does not count as the host's.
const writeCorpus = "write-corpus"

func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	if len(os.Args) == 3 && os.Args[1] == writeCorpus {
		os.Exit(writeModules(os.Args[2]))
	}
	os.Exit(m.Run())
}

// caseList is the file of all cases, as JSON.
const caseList = "cases.json"

func writeModules(dir string) (status int) {
	cases := corpus.Modules()
	list, err := json.Marshal(cases)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, caseList), list, 0o600)
	}
	for _, c := range cases {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, c.Name+".wasm"), c.Wasm(), 0o600)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// modules returns a directory with NAME.wasm for every case, and the cases.
func modules(t *testing.T) (dir string, cases []corpus.Case) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if out, err := exec.Command(self, writeCorpus, dir).CombinedOutput(); err != nil {
		t.Fatalf("write the corpus: %v\n%s", err, out)
	}
	list, err := os.ReadFile(filepath.Join(dir, caseList))
	if err == nil {
		err = json.Unmarshal(list, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, cases
}
