package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// servesIn makes this binary a service in a data directory, until it is killed.
const servesIn = "SLUICE_TEST_SERVES_IN"

// serve starts a run of every connection, and of the conformance connector, and
// says which, once all of them ask.
func serve(dir string) int {
	ctx := context.Background()
	h, err := app.Open(ctx, hostOptions(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := h.Service(ctx, app.ServiceOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, w := range []string{"one", "two", "conformance-ask"} {
		rec, err := s.StartRun(host.As(ctx, owner), host.StartRun{WorkflowID: w, Inputs: json.RawMessage(oneCode)})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		wake, _ := h.Store.Watch(rec.ID)
		for {
			open, err := h.Store.Pending(ctx, rec.ID)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			if len(open) > 0 {
				break
			}
			<-wake
		}
		fmt.Println(rec.ID)
	}
	select {}
}

// A service that is killed while runs wait for their owner leaves nothing stuck: they say
// controller_restarted and name the question, and their connections run again.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	h, err := app.Open(t.Context(), hostOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	c := installAs(t, h, askModule(t), nil)
	installAs(t, h, conformanceAsk(t), conformance)
	connect(t, h, c, "one", oneCode)
	connect(t, h, c, "two", oneCode)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	ids := killed(t, dir)
	h, err = app.Open(t.Context(), hostOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	s := openService(t, h, app.ServiceOptions{})
	for _, id := range ids {
		rec := over(t, h, id)
		failed := timeline(t, h, id, "run.failed")
		if rec.Status != "failed" || len(failed) != 1 || failed[0]["reason"] != "controller_restarted" || failed[0]["open_interaction_id"] == nil {
			t.Errorf("%s: %s %v", id, rec.Status, failed)
		}
		a := host.Answer{RunID: id, InteractionID: fmt.Sprint(failed[0]["open_interaction_id"]), Status: "cancelled"}
		if code, details := refusalCode(s.Answer(host.As(t.Context(), owner), a)); code != "no_pending_interaction" || details["outcome"] != "still_open" {
			t.Errorf("answered late: %s %v", code, details)
		}
	}
	if open, err := h.Store.Pending(t.Context(), ""); err != nil || len(open) > 0 {
		t.Errorf("questions are left: %v %v", open, err)
	}
	if all := connections(t, h); len(all) != 2 {
		t.Errorf("connections: %+v", all)
	}
	parked(t, h, startRun(t, s, host.StartRun{WorkflowID: "one"}).ID)
}

// killed runs a service until its runs ask, and kills it.
func killed(t *testing.T, dir string) (ids []store.RunID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), servesIn+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for len(ids) < 3 && lines.Scan() {
		ids = append(ids, store.RunID(strings.TrimSpace(lines.Text())))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() // killed
	if len(ids) != 3 {
		t.Fatalf("the service started %v", ids)
	}
	return ids
}

// A service that is closed stops what waits, and the host can be closed after it.
func TestClosed(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	connect(t, h, installAs(t, h, askModule(t), nil), "ask", oneCode)
	rec := startRun(t, s, host.StartRun{WorkflowID: "ask"})
	q := parked(t, h, rec.ID)
	s.Close(t.Context())
	if got := over(t, h, rec.ID); got.Status != "failed" || !strings.Contains(string(got.Result), `"controller_restarted"`) {
		t.Errorf("%s %s", got.Status, got.Result)
	}
	if failed := timeline(t, h, rec.ID, "run.failed"); len(failed) != 1 || failed[0]["reason"] != "controller_restarted" {
		t.Errorf("%v", failed)
	}
	if _, err := s.StartRun(host.As(t.Context(), owner), host.StartRun{WorkflowID: "ask"}); true {
		if code, _ := refusalCode(err); code != "unavailable" {
			t.Error(err)
		}
	}
	a := host.Answer{RunID: rec.ID, InteractionID: q.ID, Status: "cancelled"}
	if code, _ := refusalCode(s.Answer(host.As(t.Context(), owner), a)); code != "no_pending_interaction" {
		t.Error(code)
	}
}
