// Package e2e tries the whole service: the Daemon of sluice serve with real
// connectors in real jails, over its API, in Chromium, and through crashes of its
// process.
//
// The browser tests need Chromium, named by SLUICE_CHROMIUM or found on the path.
// They leave pictures in tests/e2e/screenshots.
package e2e
