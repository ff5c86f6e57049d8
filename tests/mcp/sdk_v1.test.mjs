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

// checklist 96
test('SDK v1 receives progress while a long command runs', { skip }, async () => {
	const client = await connect();
	const begin = Date.now();
	const seen = [];
	const result = await client.callTool(
		{ name: 'exec', arguments: { sandbox: 'v1', command: 'for i in 1 2 3 4 5; do echo line $i; sleep 0.5; done' } },
		undefined, { onprogress: (progress) => seen.push({ ...progress, at: Date.now() - begin }) });
	assert.equal(result.structuredContent.stdout, 'line 1\nline 2\nline 3\nline 4\nline 5\n');
	assert.ok(seen.length >= 3, `${seen.length} notifications`);
	assert.ok(seen[0].at < 2400, `the first came after ${seen[0].at} ms`);
	for (let i = 1; i < seen.length; i++)
		assert.ok(seen[i].progress > seen[i - 1].progress);
	assert.match(seen.at(-1).message, /^line [345]$/);
	await client.close();
});

// checklist 96
test('SDK v1 can give a call up and go on', { skip }, async () => {
	const client = await connect();
	const slow = client.callTool({ name: 'exec', arguments: { sandbox: 'v1', command: 'sleep 4; echo done >kept' } },
		undefined, { signal: AbortSignal.timeout(500) });
	await assert.rejects(slow);
	const result = await client.callTool({ name: 'exec', arguments: { sandbox: 'v1', command: 'sleep 5; cat kept' } });
	assert.equal(result.structuredContent.stdout, 'done\n'); // in this era to go away means nothing
	await client.close();
});

test('SDK v1 walks through a task, each step as a new client', { skip }, async () => {
	const step = async (name, args) => {
		const client = await connect();
		await client.listTools();
		const result = await client.callTool({ name, arguments: args });
		assert.notEqual(result.isError, true, textOf(result));
		await client.close();
		return result.structuredContent;
	};
	const { sandbox_id } = await step('create_sandbox', { template: 'base', timeout: 600 });
	const started = await step('start_task', { command: 'printf BEFORE; sleep 2; printf AFTER; exit 3', timeout: 120 });
	assert.equal(started.sandbox_id, sandbox_id);
	const handle = { sandbox_id, task_id: started.task_id };
	const first = await step('get_task', { ...handle, wait: 10 });
	assert.deepEqual([first.state, first.stdout, first.stdout_next_offset], ['running', 'BEFORE', 6]);
	let last = first;
	while (last.state === 'running')
		last = await step('get_task', { ...handle, stdout_offset: 6, wait: 10 });
	last = await step('get_task', { ...handle, stdout_offset: first.stdout_next_offset });
	assert.deepEqual([last.state, last.exit_code, last.stdout], ['failed', 3, 'AFTER']);
	const second = await step('start_task', { sandbox_id, command: 'sleep 300' });
	const cancelled = await step('cancel_task', { sandbox_id, task_id: second.task_id });
	assert.equal(cancelled.state, 'cancelled');
	const { jobs } = await step('list_jobs', { sandbox: sandbox_id });
	assert.deepEqual(jobs.map((job) => [job.job_id, job.state]), [[second.task_id, 'cancelled'], [handle.task_id, 'failed']]);
	await step('kill_sandbox', { sandbox_id });
});
