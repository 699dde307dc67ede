// Package npm is for tests that need a package of the npm registry: pinned by its
// digest, fetched once and kept in the cache of the user.
package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// most limits what is read of a package, packed, and of one file in it.
const most = 128 << 20

// A Package is one version of a package.
type Package struct {
	Name, Version string
	SHA512        string // in base64, as the registry writes it
}

// PlaywrightCore drives a browser for comparison.
var PlaywrightCore = Package{Name: "playwright-core", Version: "1.65.1",
	SHA512: "hqPpz7blSMPxWVdoeE1yiBSzXsKiVOd2k+kjCvmUywD2GPO2Dd9HfcWnq9NN0GHbNZDFgZ9JfBFr+X5/BLo0qw=="}

// AssemblyScript is the compiler of that language, with its dependencies.
var AssemblyScript = []Package{
	{Name: "assemblyscript", Version: "0.28.20",
		SHA512: "5PM7GZpvcLypHcLmi30aP8mqm5HjU+LL3BdV1xDyA3USGtL2w+iMiUnhtH+vW8+2kOuHlAyPu7M+QgyEw5he1g=="},
	{Name: "binaryen", Version: "131.0.0-nightly.20260721",
		SHA512: "AAQIkhfbYXh4FBObwBrlO+5L+6Rp6OOMOjh6AdT0M+GLNLyrwKWgtW+EzmizNgx9CWDfTJPfDtKoZi62QESbtg=="},
	{Name: "long", Version: "5.3.2",
		SHA512: "mNAgZ1GmyNhD7AuqnTG3/VQ26o760+ZYBPKjPvugO8+nLbYfX6TVpJPseBvopbdY+qpZ/lKUnmEc1LeZYS3QAA=="},
}

// DuckDB is that database for node, on Linux: with the library for amd64 and for arm64.
var DuckDB = []Package{
	{Name: "@duckdb/node-api", Version: "1.5.6-r.1",
		SHA512: "yIPol6P4EQmsAUsb27donJf7iADrM31Ei/WkvhkZpSscjhEErYsuF19lsJ/qz5mUWxsKFQpLdjvrlhPQnMTBqw=="},
	{Name: "@duckdb/node-bindings", Version: "1.5.6-r.1",
		SHA512: "/pWlTyvKC1d16iSMJCBAPwlmzoeXRs5Y9cqG+TpKd/YAW6Ke05FJg099v/Im2bkS9BgznNyNcAK1NxA1eQhSUw=="},
	{Name: "detect-libc", Version: "2.1.2",
		SHA512: "Btj2BOOO83o3WyH59e8MgXsxEQVcarkUOpEYrubB0urwnN10yQ364rsiByU11nZlqWYZm05i/of7io4mzihBtQ=="},
	map[string]Package{"amd64": {Name: "@duckdb/node-bindings-linux-x64", Version: "1.5.6-r.1",
		SHA512: "IXcrZJE6kEqM0Z4wwdVnGBHX/frOS33VPNAwDXQ/Q+Fs84b058Qe94chrCCIcNJlG8Y3UHIUU4eBeCQxW5mN1Q=="},
		"arm64": {Name: "@duckdb/node-bindings-linux-arm64", Version: "1.5.6-r.1",
			SHA512: "3jnUaDil1BrF/6vAZwVaInJ1xoBaWGHB4PDiUnzJWKCo8a8TLx9j7/gPyPl/UGRBftrYIuTihRZSfF4mWMgtWA=="}}[runtime.GOARCH],
}

// ModelContextProtocol is the client of that protocol in TypeScript, with its dependencies.
var ModelContextProtocol = []Package{
	{Name: "@modelcontextprotocol/client", Version: "2.4.0",
		SHA512: "LgrD2OphHuG12vfKFKz6SOnq7bKHQmhGJIAYdD+MZBn2npHEyry6uD8zvktodtl5CQM85MO0anUyD9JwmUmxww=="},
	{Name: "@modelcontextprotocol/core", Version: "2.4.0",
		SHA512: "z8QBKqdfXLPzkLQuG4xp8hrVEMm1PZ1IgxMN2sMbJiFiAKOWXnAzogXn2W4aqIBlP1ea6U5yiqVquvUNM1Cj6Q=="},
	{Name: "cross-spawn", Version: "7.0.6",
		SHA512: "uV2QOWP2nWzsy2aMp8aRibhi9dlzF5Hgh5SHaB9OiTGEyDTiJJyx0uy51QXdyWbtAHNua4XJzUKca3OzKUd3vA=="},
	{Name: "eventsource", Version: "3.0.7",
		SHA512: "CRT1WTyuQoD771GW56XEZFQ/ZoSfWid1alKGDYMmkt2yl8UXrVR4pspqWNEcqKvVIzg6PAltWjxcSSPrboA4iA=="},
	{Name: "eventsource-parser", Version: "3.1.1",
		SHA512: "EKN1vKAMcZ8MlYMpaNuxN6R9yakzH6uajHcHVTqWJzvu5pWw9DyhbP35HH8MVBQ+dZjAfDxk+A8NiR9KWaXiyQ=="},
	{Name: "isexe", Version: "2.0.0",
		SHA512: "RHxMLp9lnKHGHRng9QFhRCMbYAcVpn69smSGcq3f36xjgVVWThj4qqLbTLlq7Ssj8B+fIQ1EuCEGI2lKsyQeIw=="},
	{Name: "jose", Version: "6.2.18",
		SHA512: "doV4thUwgkrycJH4yLeqwTGIIZphHl+pk7CPReuMIhYhncmgzdko85MaCG4YQFTxqMFr1/oEH32tZuKKovcDEg=="},
	{Name: "path-key", Version: "3.1.1",
		SHA512: "ojmeN0qd+y0jszEtoY48r0Peq5dwMEkIlCOu6Q5f41lfkswXuKtYrhgoTpLnyIcHm24Uhqx+5Tqm2InSwLhE6Q=="},
	{Name: "pkce-challenge", Version: "5.0.1",
		SHA512: "wQ0b/W4Fr01qtpHlqSqspcj3EhBvimsdh0KlHhH8HRZnMsEa0ea2fTULOXOS9ccQr3om+GcGRk4e+isrZWV8qQ=="},
	{Name: "shebang-command", Version: "2.0.0",
		SHA512: "kHxr2zZpYtdmrN1qDjrrX/Z1rR1kG8Dx+gkpK1G4eXmvXswmcE1hTWBWYUzlraYw1/yZp6YuDY77YtvbN0dmDA=="},
	{Name: "shebang-regex", Version: "3.0.0",
		SHA512: "7++dFhtcx3353uBaq8DDR4NuxBetBzC7ZQOhmTQInHEd6bSrXdiEyzCvG07Z44UYdLShWUyXt5M/yhz8ekcb1A=="},
	{Name: "which", Version: "2.0.2",
		SHA512: "BLI3Tl1TW3Pvl70l3yq3Y64i+awpwXqsGBYWkkqMtnbXgrMD+yj7rhW0kuEDxzJaYXGjEW5ogapKNMEKNMjibA=="},
	{Name: "zod", Version: "4.6.7",
		SHA512: "g8W2D2kU6a8untc053fX1uVBKzM7yqAxW/3zwk83+6RyF2+SKOuV+c0wBDhUwzV1PaGapmZH+rmcUzPf+3CGwg=="},
}

// Tarball returns the package as the registry has it. If it cannot be fetched the test
// fails: no test must pass because it is offline.
func (p Package) Tarball(tb testing.TB) []byte {
	tb.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	file := path.Base(p.Name) + "-" + p.Version + ".tgz"
	path := filepath.Join(user, "sluice-tests-npm", strings.ReplaceAll(p.Name, "/", "+")+"-"+p.Version+".tgz")
	if packed, err := os.ReadFile(path); err == nil && p.is(packed) {
		return packed
	}
	url := "https://registry.npmjs.org/" + p.Name + "/-/" + file
	packed, err := fetch(tb.Context(), url)
	if err != nil {
		tb.Fatalf("%s is not in %s and cannot be fetched; this test needs the npm registry once: %v", p.Name, path, err)
	}
	if !p.is(packed) {
		tb.Fatalf("%s is not the file that was pinned", url)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, packed, 0o600)); err != nil {
		tb.Fatal(err)
	}
	return packed
}

func (p Package) is(packed []byte) bool {
	sum := sha512.Sum512(packed)
	return base64.StdEncoding.EncodeToString(sum[:]) == p.SHA512
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		return nil, fmt.Errorf("%s: %s", url, res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, most))
}

// File is one file of the package, by its path in it.
func (p Package) File(tb testing.TB, name string) string {
	tb.Helper()
	var text string
	p.each(tb, func(path string, content io.Reader) error {
		if path != name {
			return nil
		}
		b, err := io.ReadAll(io.LimitReader(content, most))
		text = string(b)
		return err
	})
	if text == "" {
		tb.Fatalf("%s has no file %s", p.Name, name)
	}
	return text
}

// Unpack writes the package to dir/node_modules/NAME.
func (p Package) Unpack(tb testing.TB, dir string) {
	tb.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer root.Close()
	p.each(tb, func(path string, content io.Reader) error {
		to := filepath.Join("node_modules", p.Name, filepath.FromSlash(path))
		if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		f, err := root.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, io.LimitReader(content, most))
		return errors.Join(err, f.Close())
	})
}

// each visits the files of the package by their paths in it.
func (p Package) each(tb testing.TB, visit func(path string, content io.Reader) error) {
	tb.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(p.Tarball(tb)))
	if err != nil {
		tb.Fatal(err)
	}
	for files := tar.NewReader(unpacked); ; {
		f, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil && f.Typeflag == tar.TypeReg {
			err = visit(strings.TrimPrefix(f.Name, "package/"), files)
		}
		if err != nil {
			tb.Fatalf("%s: %v", p.Name, err)
		}
	}
}
