// The examples in contrib/clients, put to use: an address and a token in place of those to be replaced, then each entry
// connects as its client would.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { startService } from './service.mjs';

const service = await startService();
const skip = service.skip ?? false;
after(() => service.stop?.());

const directory = new URL('../../contrib/clients/', import.meta.url);
const files = (await readdir(directory)).filter((name) => /\.(json|ya?ml)$/.test(name));

// YAML is read by a package of the conformance suite.
function parse(name, text) {
	if (name.endsWith('.json'))
		return JSON.parse(text);
	return createRequire(new URL('../conformance/package.json', import.meta.url))('yaml').parse(text);
}

const hasYaml = await readdir(new URL('../conformance/node_modules/yaml', import.meta.url)).then(() => true, () => false);

function fillIn(text) {
	return text.replaceAll('https://your.host/mcp', service.url.href)
		.replaceAll(/YOUR-TOKEN|\$\{(env:|input:)?(SPOOLBOX_TOKEN|spoolbox-token)\}/g, service.token)
		.replaceAll('/usr/local/bin/spoolbox', service.stdio.command)
		.replaceAll('/home/YOU/.local/share/spoolbox', service.stdio.env.SMCP_SPOOL);
}

// What each client calls the transport that we serve; without a type the URL or the command says it.
const httpTypes = [undefined, 'http', 'streamableHttp', 'streamable-http'];

function transportOf(entry) {
	if (entry.url === undefined) {
		assert.ok([undefined, 'stdio'].includes(entry.type), entry.type);
		return new StdioClientTransport({ command: entry.command, args: entry.args, env: { ...service.stdio.env, ...entry.env }, stderr: 'inherit' });
	}
	assert.ok(httpTypes.includes(entry.type), entry.type);
	return new StreamableHTTPClientTransport(new URL(entry.url), { requestInit: { headers: entry.headers } });
}

for (const name of files) {
	const reason = skip || (!name.endsWith('.json') && !hasYaml ? 'tests/conformance/node_modules has no yaml (npm ci)' : false);
	test(`the example ${name} connects`, { skip: reason }, async () => {
		const example = parse(name, fillIn(await readFile(new URL(name, directory), 'utf8')));
		const entries = Object.values(example.mcpServers ?? example.servers);
		assert.ok(entries.length > 0);
		for (const entry of entries) {
			if (entry.command === 'npx') // would fetch a program
				continue;
			const client = new Client({ name: 'example', version: '1' }, { versionNegotiation: { mode: 'auto' } });
			await client.connect(transportOf(entry));
			const { tools } = await client.listTools();
			const known = tools.map((tool) => tool.name);
			for (const approved of entry.autoApprove ?? [])
				assert.ok(known.includes(approved), approved);
			await client.close();
		}
	});
}
