package app_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/signature"
)

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// What somebody with connectors:manage could upload.
func TestHostileUploads(t *testing.T) {
	s, h := service(t)
	good := module(t, manifestOf("mail", "1", "", ""))
	importing := func(mod, name string) []byte {
		section := "\x02" + string(rune(5+len(mod)+len(name))) + "\x01" + string(rune(len(mod))) + mod +
			string(rune(len(name))) + name + "\x00\x00"
		return []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + section)
	}
	for name, c := range map[string]struct {
		q          host.InstallConnector
		code, rule string
	}{
		"nothing":     {host.InstallConnector{}, "validation_error", "one_of"},
		"both":        {host.InstallConnector{Module: good, Digest: digestOf(good)}, "validation_error", "one_of"},
		"no wasm":     {host.InstallConnector{Module: []byte("#!/bin/sh")}, "module_invalid", "header"},
		"empty":       {host.InstallConnector{Module: []byte{}}, "module_invalid", ""},
		"too large":   {host.InstallConnector{Module: make([]byte, 33<<20)}, "module_invalid", "module_bytes"},
		"no manifest": {host.InstallConnector{Module: []byte(bare)}, "connector_invalid", ""},
		"bad manifest": {host.InstallConnector{Module: []byte(bare),
			Manifest: []byte(`{"protocol_version": "0.1.0"}`)}, "connector_invalid", ""},
		"huge manifest": {host.InstallConnector{Module: []byte(bare), Manifest: []byte(strings.Repeat(" ", 300<<10))},
			"connector_invalid", "manifest_too_large"},
		"two manifests": {host.InstallConnector{Module: good, Manifest: []byte(manifestOf("mail", "2", "", ""))},
			"connector_invalid", "manifest_twice"},
		"another": {host.InstallConnector{Module: good, ExpectedDigest: digestOf([]byte("x"))},
			"pack_integrity_failure", ""},
		"digest of a path": {host.InstallConnector{Digest: "sha256:../../../../etc/passwd"},
			"validation_error", "digest_invalid"},
		"padded path": {host.InstallConnector{Digest: "sha256:" + strings.Repeat("../", 21) + "x"},
			"validation_error", "digest_invalid"},
		"upper case": {host.InstallConnector{Digest: strings.ToUpper(digestOf(good))},
			"validation_error", "digest_invalid"},
		"reserved": {host.InstallConnector{Module: module(t, manifestOf("conformance-noop", "1", "", ""))},
			"connector_invalid", "id_reserved"},
		"reserved name": {host.InstallConnector{Module: module(t,
			manifestOf("https://evil.example/conformance-noop", "1", "", "")), Force: true}, "connector_invalid", "id_reserved"},
		"no signature": {host.InstallConnector{Module: good, Signature: []byte("trust me")}, "signature_invalid", ""},
		"signature of a part": {host.InstallConnector{Module: []byte(bare), Manifest: []byte(manifestOf("mail", "1", "", "")),
			Signature: []byte("x")}, "signature_invalid", ""},
	} {
		_, _, err := s.InstallConnector(host.As(t.Context(), somebody), c.q)
		if r := refused(t, err, c.code, c.rule, "etc/passwd", "trust me"); t.Failed() {
			t.Fatalf("%s: %+v", name, r)
		}
		if _, err := s.InspectConnector(t.Context(), c.q); !strings.HasPrefix(c.rule, "id_reserved") {
			refused(t, err, c.code, c.rule)
		}
	}
	for name, kind := range map[string]string{"sock_open": "network-escape", "fork": "host-process-escape",
		"path_symlink_all": "host-fs-escape", "magic": "other"} {
		_, _, err := s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Module: importing("env", name)})
		if r := refused(t, err, "sandbox_escape_attempt", ""); r.Details["import"] != "env."+name ||
			r.Details["escapeKind"] != kind {
			t.Errorf("%s: %v", name, r.Details)
		}
	}
	_, _, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Digest: digestOf([]byte("nobody has it"))})
	absent(t, err)
	if all, err := s.Connectors(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("installed: %+v, %v", all, err)
	}
	if left, err := filepath.Glob(filepath.Join(h.DataDir, "modules", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A connector is installed, listed and uninstalled; one in use and a doubtful one are refused.
func TestInstallConnector(t *testing.T) {
	s, h := service(t)
	text := manifestOf("mail", "1", `"network": {"required": true, "hosts": ["a.example"]}`, "")
	wasm := module(t, text)
	c, created, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: wasm, ExpectedDigest: digestOf(wasm)})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	if c.Name != "mail" || c.Version != "1" || c.ModuleDigest != digestOf(wasm) || c.Description != "Collects mail" ||
		c.InstalledBy != somebody.ID || c.Source.Type != "upload" ||
		c.Signature.Status != "unsigned" || c.Size != int64(len(wasm)) || c.Revision != 1 || c.ABI.Family != "stdio" ||
		!slices.Equal(c.Requested.Streams, []string{"mail", "rows"}) ||
		len(c.Warnings) != 0 { // it may reach its server by lines
		t.Errorf("%+v", c)
	}
	if b, err := json.Marshal(c.Requested); err != nil ||
		string(b) != `{"bindings":{"network":{"required":true,"hosts":["a.example"]}},"secrets":[],"streams":["mail","rows"],"interactionKinds":[]}` {
		t.Errorf("requested: %s, %v", b, err)
	}
	wrote(t, s, "connector.installed")
	if c, created, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Digest: digestOf(wasm)}); err != nil || created || c.Revision != 1 {
		t.Errorf("again: %v, %v, %+v", created, err, c)
	}
	other := module(t, strings.Replace(text, "Collects mail", "Collects <more> mail", 1))
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Module: other})
	refused(t, err, "connector_version_conflict", "")
	if got, err := s.InspectConnector(t.Context(), host.InstallConnector{Module: other}); err != nil ||
		!slices.ContainsFunc(got.Findings, func(w host.Warning) bool { return w.Code == "suspicious" }) ||
		!slices.Contains(got.Words, "reach a.example") || got.Digest != digestOf(other) {
		t.Errorf("%+v, %v", got, err)
	}
	c, created, err = s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Module: other, Force: true})
	if err != nil || !created || c.Revision != 2 {
		t.Errorf("forced: %v, %v, %+v", created, err, c)
	}
	if _, created, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: other}); err != nil || created {
		t.Errorf("with characters that the store escapes: %v, %v", created, err)
	}
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: module(t, manifestOf("mail", "0.9", "", ""))})
	if r := refused(t, err, "connector_invalid", "suspicious"); len(r.Details["doubts"].([]string)) != 1 {
		t.Errorf("doubts %v", r.Details)
	}
	wrote(t, s, "policy.refused")

	if _, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail"}); err != nil {
		t.Fatal(err)
	}
	if c, err = s.Connector(t.Context(), "mail"); err != nil || len(c.Connections) != 1 || c.Connections[0].Ready ||
		c.Connections[0].Schedule != "none" {
		t.Errorf("%+v, %v", c.Connections, err)
	}
	err = s.UninstallConnector(host.As(t.Context(), somebody), "mail", "")
	if r := refused(t, err, "connector_in_use", ""); !slices.Equal(r.Details["connectionIds"].([]string),
		[]string{"mail"}) {
		t.Errorf("in use by %v", r.Details)
	}
	if err := s.DeleteConnection(host.As(t.Context(), somebody), "mail", false); err != nil {
		t.Fatal(err)
	}
	absent(t, s.UninstallConnector(host.As(t.Context(), somebody), "mail", "2"))
	absent(t, s.UninstallConnector(host.As(t.Context(), somebody), "nobody", ""))
	if err := s.UninstallConnector(host.As(t.Context(), somebody), "mail", "1"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Connector(t.Context(), "mail")
	absent(t, err)
	if _, created, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Digest: digestOf(other)}); err != nil || !created {
		t.Errorf("by its digest: %v, %v", created, err)
	}

	// Bytes that were changed on the disk are not installed.
	path := filepath.Join(h.DataDir, "modules", strings.TrimPrefix(digestOf(wasm), "sha256:")+".wasm")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, other, 0o400); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Digest: digestOf(wasm)})
	refused(t, err, "connector_not_runnable", "")
}

// Of modules that come at once under one version, one is installed.
func TestInstalledOnce(t *testing.T) {
	s, _ := service(t)
	var all sync.WaitGroup
	results := make([]error, 6)
	for i := range results {
		wasm := module(t, strings.Replace(manifestOf("mail", "1", "", ""), "Collects mail", fmt.Sprint("Collects ", i), 1))
		all.Go(func() {
			_, _, results[i] = s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Module: wasm})
		})
	}
	all.Wait()
	made := 0
	for _, err := range results {
		var r *host.Refusal
		if err == nil {
			made++
		} else if !errors.As(err, &r) || r.Code != "conflict" && r.Code != "connector_version_conflict" &&
			r.Code != "connector_invalid" {
			t.Error(err)
		}
	}
	if c, err := s.Connector(t.Context(), "mail"); err != nil || c.Revision != 1 || made != 1 {
		t.Errorf("%d installed, %+v, %v", made, c, err)
	}
}

// A module whose manifest is beside it runs with that.
func TestInstallWithManifest(t *testing.T) {
	s, h := service(t)
	text := manifestOf("mail", "1", "", "")
	if _, _, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: []byte(bare), Manifest: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	l, err := h.Load(t.Context(), "mail", "")
	if err != nil || l.Manifest.Version != "1" {
		t.Fatal(l, err)
	}
	if _, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail"}); err != nil {
		t.Fatal(err)
	}
	if l, err = h.LoadFor(t.Context(), stored(t, h, "mail")); err != nil || l.Manifest.Version != "1" {
		t.Fatal(l, err)
	}
	asksMore := manifestOf("mail", "1", `"network": {"hosts": ["evil.example"]}`, "")
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: []byte(bare), Manifest: []byte(asksMore)})
	refused(t, err, "connector_version_conflict", "")
}

// The API pins keys as the command line does.
func TestInstallSigned(t *testing.T) {
	s, h := service(t)
	publisher, thief := newKey(t), newKey(t)
	sign := func(k signature.PrivateKey, wasm []byte) []byte {
		l, err := h.LoadBytes(wasm, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := signature.Sign(k, wasm, l.Claims(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first, second := module(t, manifestOf("mail", "1", "", "")), module(t, manifestOf("mail", "2", "", ""))
	if _, created, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: first}); err != nil || !created {
		t.Fatal(err)
	}
	c, created, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: first, Signature: sign(publisher, first)})
	if err != nil || created || c.Signature.Status != "verified" || c.Signature.Signer != publisher.Public().String() {
		t.Errorf("signed later: %v, %v, %+v", created, err, c.Signature)
	}
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: second, Signature: sign(publisher, first)})
	refused(t, err, "signature_invalid", "")
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: second, Signature: sign(thief, second)})
	refused(t, err, "connector_invalid", "suspicious")
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Module: second})
	refused(t, err, "connector_invalid", "suspicious")
	h.Options.RequireSignature = true
	_, _, err = s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Module: second, Force: true})
	refused(t, err, "signature_required", "")
	if _, _, err := s.InstallConnector(host.As(t.Context(), somebody),
		host.InstallConnector{Module: second, Signature: sign(publisher, second)}); err != nil {
		t.Error(err)
	}
}

// Only the conformance connectors have their names, and nothing else has no more than they
// may.
func TestInstallConformance(t *testing.T) {
	s, h := service(t)
	load := func(manifest string) *app.Loaded {
		l, err := h.LoadBytes(module(t, manifest), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	conformance := app.InstallOptions{Conformance: true}
	for name, m := range map[string]string{
		"another name": manifestOf("mail", "1", "", ""),
		"network":      manifestOf("conformance-noop", "1", `"network": {}`, ""),
		"secret":       manifestOf("conformance-noop", "1", "", `{"secrets": [{"name": "x"}]}`),
	} {
		if _, err := h.Install(t.Context(), load(m), conformance); err == nil {
			t.Errorf("%s was installed", name)
		}
	}
	if _, err := h.Install(t.Context(), load(manifestOf("conformance-noop", "1", `"interactive": {"required": true}`, "")),
		conformance); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Connector(t.Context(), "conformance-noop"); err != nil || !c.Conformance {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "conformance-noop", ConnectionID: "mine"})
	refused(t, err, "validation_error", "conformance")
}
