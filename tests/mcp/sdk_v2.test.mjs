// The official SDK of the second generation, in each way it can choose an era.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startService, textOf } from './service.mjs';

const service = await startService();
const skip = service.skip ?? false;
after(() => service.stop?.());

async function connect(mode, token = service.token) {
	const client = new Client({ name: 'spoolbox-test', version: '1' }, { versionNegotiation: { mode } });
	await client.connect(new StreamableHTTPClientTransport(service.url,
		{ requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
	return client;
}

const modes = [
	{ name: 'legacy', mode: 'legacy', version: '2025-11-25' },
	{ name: 'auto', mode: 'auto', version: '2026-07-28' },
	{ name: 'pinned', mode: { pin: '2026-07-28' }, version: '2026-07-28' },
];

// checklist 96
for (const { name, mode, version } of modes) {
	test(`SDK v2 ${name} negotiates ${version}`, { skip }, async () => {
		const client = await connect(mode);
		assert.equal(client.getNegotiatedProtocolVersion(), version);
		await client.close();
	});

	test(`SDK v2 ${name} lists the tools and runs a command`, { skip }, async () => {
		const client = await connect(mode);
		const { tools } = await client.listTools();
		assert.ok(tools.some((tool) => tool.name === 'exec'));
		const result = await client.callTool({ name: 'exec', arguments: { sandbox: `v2-${name}`, command: 'echo 中文; exit 4' } });
		assert.notEqual(result.isError, true);
		assert.equal(result.structuredContent.stdout, '中文\n');
		assert.equal(result.structuredContent.exit_code, 4);
		await client.close();
	});

	test(`SDK v2 ${name} sees a failed call as an error result`, { skip }, async () => {
		const client = await connect(mode);
		const result = await client.callTool({ name: 'read_text', arguments: { sandbox: 'nosuch', path: 'x' } });
		assert.equal(result.isError, true);
		assert.match(textOf(result), /nosuch/);
		await client.close();
	});

	test(`SDK v2 ${name} with a wrong token is refused`, { skip }, async () => {
		await assert.rejects(connect(mode, 'wrong'), /401|[Uu]nauthorized|token in the Authorization header/);
	});

	test(`SDK v2 ${name} can give a call up and go on`, { skip }, async () => {
		const client = await connect(mode);
		const slow = client.callTool({ name: 'exec', arguments: { sandbox: `v2-${name}`, command: 'sleep 20' } },
			{ signal: AbortSignal.timeout(500) });
		await assert.rejects(slow);
		const result = await client.callTool({ name: 'exec', arguments: { sandbox: `v2-${name}`, command: 'echo next' } });
		assert.equal(result.structuredContent.stdout, 'next\n');
		await client.close();
	});

	test(`SDK v2 ${name} receives progress while a long command runs`, { skip }, async () => {
		const client = await connect(mode);
		const seen = [];
		const result = await client.callTool(
			{ name: 'exec', arguments: { sandbox: `v2-${name}`, command: 'for i in 1 2 3 4; do echo line $i; sleep 0.5; done' } },
			{ onprogress: (progress) => seen.push(progress) });
		assert.equal(result.structuredContent.stdout, 'line 1\nline 2\nline 3\nline 4\n');
		assert.ok(seen.length >= 2, `${seen.length} notifications`);
		assert.match(seen.at(-1).message, /^line [234]$/);
		await client.close();
	});
}

// How many seconds a command goes on after its client gave it up; at most 20 are waited for.
async function goesOnAfterAbort(mode, mark, options) {
	const client = await connect(mode);
	const exec = async (command, options) =>
		(await client.callTool({ name: 'exec', arguments: { sandbox: 'v2-abort', command } }, options)).structuredContent;
	const count = async () => Number((await exec(`pgrep -fc '^sleep ${mark}$' || true`)).stdout);
	const abort = new AbortController();
	const slow = exec(`setsid sleep ${mark} & while :; do date; sleep 0.3; done & sleep ${mark}`, { signal: abort.signal, ...options });
	slow.catch(() => {});
	while (await count() !== 2)
		await new Promise((resolve) => setTimeout(resolve, 100));
	const begin = Date.now();
	abort.abort();
	await assert.rejects(slow);
	while (await count() > 0 && Date.now() < begin + 20000)
		await new Promise((resolve) => setTimeout(resolve, 200));
	await client.close();
	return (Date.now() - begin) / 1000;
}

test('SDK v2 modern: to give a call up ends its command and what that started', { skip }, async () => {
	// a web server shows that the client has gone when something is written to it: progress ...
	const seconds = await goesOnAfterAbort({ pin: '2026-07-28' }, 301, { onprogress: () => {} });
	assert.ok(seconds < 10, `it went on for ${seconds} s`);
});

test('SDK v2 modern: without progress that takes a keep-alive', { skip }, async () => {
	const seconds = await goesOnAfterAbort({ pin: '2026-07-28' }, 302, {});
	assert.ok(seconds < 18, `it went on for ${seconds} s`);
});
