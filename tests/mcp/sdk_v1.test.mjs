// The official SDK of the first generation, which speaks the handshake era only.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startService, textOf } from './service.mjs';

const service = await startService();
const skip = service.skip ?? false;
after(() => service.stop?.());

async function connect(token = service.token) {
	const client = new Client({ name: 'spoolbox-test', version: '1' });
	await client.connect(new StreamableHTTPClientTransport(service.url,
		{ requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
	return client;
}

test('SDK v1 connects and learns who it talks to', { skip }, async () => {
	const client = await connect();
	assert.equal(client.getServerVersion().name, 'spoolbox');
	assert.ok(client.getInstructions().length > 100);
	await client.ping();
	await client.close();
});

test('SDK v1 lists the tools, each with an object schema', { skip }, async () => {
	const client = await connect();
	const { tools } = await client.listTools();
	const names = tools.map((tool) => tool.name);
	for (const name of ['exec', 'write_text', 'read_text', 'upload_file', 'download_file'])
		assert.ok(names.includes(name), name);
	for (const tool of tools)
		assert.equal(tool.inputSchema.type, 'object');
	await client.close();
});

test('SDK v1 runs a command and its result fits the output schema', { skip }, async () => {
	const client = await connect();
	await client.listTools(); // the client checks structured content against what it learns here
	const result = await client.callTool({ name: 'exec', arguments: { sandbox: 'v1', command: 'echo out; echo err >&2; exit 3' } });
	assert.notEqual(result.isError, true);
	assert.equal(result.structuredContent.stdout, 'out\n');
	assert.equal(result.structuredContent.stderr, 'err\n');
	assert.equal(result.structuredContent.exit_code, 3);
	assert.deepEqual(JSON.parse(textOf(result)), result.structuredContent);
	await client.close();
});

test('SDK v1 calls every tool of a file round trip', { skip }, async () => {
	const client = await connect();
	await client.listTools();
	const call = async (name, args) => {
		const result = await client.callTool({ name, arguments: { sandbox: 'v1', ...args } });
		assert.notEqual(result.isError, true, textOf(result));
		return result.structuredContent;
	};
	await call('write_text', { path: 'a/b.txt', content: 'one\ntwo 中文\n' });
	await call('edit_text', { path: 'a/b.txt', old_text: 'one', new_text: 'zero' });
	assert.equal((await call('read_text', { path: 'a/b.txt' })).content, 'zero\ntwo 中文\n');
	assert.equal((await call('list_files', { path: 'a' })).entries[0].name, 'b.txt');
	const { url } = await call('upload_file', { dest: 'up.bin' });
	const put = await fetch(url, { method: 'PUT', body: new Uint8Array(70000).fill(7) });
	assert.ok(put.ok, `status ${put.status}`);
	const link = await call('download_file', { src: 'up.bin' });
	const got = new Uint8Array(await (await fetch(link.url)).arrayBuffer());
	assert.deepEqual(got, new Uint8Array(70000).fill(7));
	const { sandboxes } = (await client.callTool({ name: 'list_sandboxes', arguments: {} })).structuredContent;
	assert.ok(sandboxes.some((sandbox) => sandbox.name === 'v1'));
	await call('destroy_sandbox', { delete_files: true });
	await client.close();
});

test('SDK v1 sees a failed call as an error result that says what to do', { skip }, async () => {
	const client = await connect();
	const result = await client.callTool({ name: 'read_text', arguments: { sandbox: 'nosuch', path: 'x' } });
	assert.equal(result.isError, true);
	assert.match(textOf(result), /nosuch/);
	await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), /no_such_tool|-32602/);
	await client.close();
});

test('SDK v1 with a wrong token is refused', { skip }, async () => {
	await assert.rejects(connect('wrong'), /401|[Uu]nauthorized|token in the Authorization header/);
});

test('twenty SDK v1 clients at once each get their own answer', { skip }, async () => {
	await Promise.all(Array.from({ length: 20 }, async (_, i) => {
		const client = await connect();
		const result = await client.callTool({ name: 'exec', arguments: { sandbox: `many-${i % 4}`, command: `echo ${i}` } });
		assert.equal(result.structuredContent.stdout, `${i}\n`);
		await client.close();
	}));
});
