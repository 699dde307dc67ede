// A client of another maker. It reads where the host is, a token, calls and revisions from
// its standard input, makes all calls in each revision, and writes what came of it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

let text = '';
for await (const chunk of process.stdin) text += chunk;
const { url, token, calls, versions } = JSON.parse(text);
const out = {};
for (const version of versions) {
  const client = new Client({ name: 'typescript', version: '1' }, version.startsWith('2025') ? { supportedProtocolVersions: [version] } : { versionNegotiation: { mode: { pin: version } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
  const tools = (await client.listTools()).tools.map(t => t.name).sort();
  const resources = (await client.listResources()).resources.map(r => r.uri);
  const answers = [];
  for (const [name, args] of calls) {
    try {
      const r = await client.callTool({ name, arguments: args });
      answers.push({ error: !!r.isError, structured: r.structuredContent ?? null, text: JSON.stringify(r) });
    } catch (e) {
      answers.push({ error: true, structured: null, text: String(e) });
    }
  }
  out[version] = { tools, resources, answers, server: client.getServerVersion()?.name, negotiated: client.getNegotiatedProtocolVersion?.() ?? '' };
  await client.close();
}
console.log(JSON.stringify(out));
