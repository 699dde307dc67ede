package timeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/timeline"
)

// What a log says of a browser, in one view.
func TestBrowser(t *testing.T) {
	if b := started().fold().Browser(); b != nil {
		t.Errorf("a run without a browser has %+v", b)
	}
	s := started().
		commit(ev{typ: "run.browser_surface_requested", data: `{"surface_id":"sf_1","profile":"shop"}`}).
		commit(ev{typ: "run.browser_surface_ready", data: `{"surface_id":"sf_1","profile":"shop"}`}).
		commit(ev{typ: "run.browser_action", data: `{"action":"click","verification_result":"verified"}`}).
		commit(ev{typ: "run.browser_action",
			data: `{"action":"click","verification_result":"inconclusive","runtime_code":"TIMEOUT"}`}).
		commit(ev{typ: "run.browser_egress_denied",
			data: `{"host":"ads.example","port":443,"verdict":"host_denied","count":3}`}).
		commit(ev{typ: "run.browser_egress_denied", data: `{"host":"ads.example","port":80,"verdict":"host_denied"}`}).
		commit(ev{typ: "run.browser_egress_denied", data: `{"host":"x.example","count":-7}`})
	want := &timeline.Browser{SurfaceID: "sf_1", Profile: "shop", State: "ready", Verified: 1, Failed: 1,
		Denied: []timeline.DeniedHost{{Host: "ads.example", Count: 4}, {Host: "x.example", Count: 1}}}
	if diff := cmp.Diff(want, s.fold().Browser()); diff != "" {
		t.Error(diff)
	}
	s.commit(ev{typ: "run.browser_action", data: `{"actions":1100}`}).
		commit(ev{typ: "run.browser_surface_lost", interaction: "a",
			data: `{"surface_id":"sf_1","browser_surface_probe":{"ok":false,"code":"browser_surface_page_stale"}}`})
	want.Verified, want.State, want.Code = 1099, "lost", "browser_surface_page_stale"
	if diff := cmp.Diff(want, s.fold().Browser()); diff != "" {
		t.Error(diff)
	}
}

// What a page chooses does not make a fold grow without end.
func TestBrowserIsBounded(t *testing.T) {
	s := started()
	for i := range 60 {
		s.commit(ev{typ: "run.browser_egress_denied",
			data: fmt.Sprintf(`{"host":"%d.%s","count":2}`, i, strings.Repeat("x", 400))})
	}
	s.commit(ev{typ: "run.browser_surface_failed", data: `{"surface_id":"` + strings.Repeat("s", 1000) + `","profile":"` +
		strings.Repeat("p", 1000) + `","code":"` + strings.Repeat("c", 1000) + `"}`})
	b := s.fold().Browser()
	if len(b.Denied) != 50 || b.DeniedMore != 20 || len(b.Denied[0].Host) > 253 || len(b.SurfaceID) > 128 ||
		len(b.Profile) > 128 || len(b.Code) > 128 {
		t.Errorf("%d hosts and %d more: %+v", len(b.Denied), b.DeniedMore, b)
	}
}

// What artifact.created says of a file, each once, and no more of them than
// there is room for.
func TestArtifacts(t *testing.T) {
	s := started().commit(ev{typ: "artifact.created", node: "collect",
		data: `{"artifactId":"art_1","artifactType":"browser-trace","nodeId":"collect",` +
			`"summary":"Browser trace, 2 actions","mediaType":"application/zip","size":12,"digest":"sha256:ab"}`})
	want := []timeline.Artifact{{ArtifactID: "art_1", ArtifactType: "browser-trace",
		RunID: "run_01K9W3C7RZ5D1N8V5X9M2QH4TB", NodeID: "collect",
		CreatedAt: "2026-03-02T08:00:03.000Z", Summary: "Browser trace, 2 actions", MediaType: "application/zip", Size: 12,
		Digest: "sha256:ab"}}
	if diff := cmp.Diff(want, s.fold().Artifacts()); diff != "" {
		t.Error(diff)
	}
	s.commit(ev{typ: "artifact.created", data: `{"artifactType":"no id"}`})
	for i := range 100 {
		s.commit(ev{typ: "artifact.created",
			data: fmt.Sprintf(`{"artifactId":"art_x%d","summary":"%s"}`, i, strings.Repeat("s", 2000))})
	}
	all := s.fold().Artifacts()
	if len(all) != 64 || len(all[63].Summary) > 500 {
		t.Errorf("%d artifacts, the last with %d bytes of summary", len(all), len(all[len(all)-1].Summary))
	}
}
