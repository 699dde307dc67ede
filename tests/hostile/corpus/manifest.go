package corpus

// Manifest is what every case carries that does not need more.
const Manifest = `{"protocol_version":"0.1.0","connector_id":"hostile","version":"1.0.0","display_name":"Hostile",` +
	`"runtime_requirements":{"bindings":{}},` +
	`"streams":[{"name":"items","semantics":"append_only","primary_key":["id"],` +
	`"schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}]}`

// FilesManifest asks for a writable directory too.
const FilesManifest = `{"protocol_version":"0.1.0","connector_id":"hostile","version":"1.0.0","display_name":"Hostile",` +
	`"runtime_requirements":{"bindings":{"filesystem":{"mounts":[{"name":"data","mode":"rw","purpose":"test"}]}}},` +
	`"streams":[{"name":"items","semantics":"append_only","primary_key":["id"],` +
	`"schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}]}`
