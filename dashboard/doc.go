// Package dashboard is the owner's dashboard: the pages below /ui, the fragments that
// they stream to themselves, and the routes that their buttons call (run-api.md
// A30 to A38). It reads the store and the log, asks the host through
// host.Host, and decides nothing itself.
//
// Strings of connectors, sites and records are hostile. They reach HTML through
// html/template alone, in text and attribute contexts, inside <bdi hx-disable>,
// and are never made into links (S99, S100). No value is ever converted to a type
// that html/template trusts. Scripts, styles and icons are files; nothing is
// inline, nothing is evaluated, and no page asks another server for anything.
package dashboard
