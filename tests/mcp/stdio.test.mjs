// The stdio clients of both official SDKs against `spoolbox stdio`.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { startService, textOf } from './service.mjs';

const service = await startService();
const skip = service.skip ?? false;
after(() => service.stop?.());

const info = { name: 'spoolbox-test', version: '1' };
const clients = [
	{ name: 'v1', make: () => new ClientV1(info), Transport: StdioV1, call: (client, params, options) => client.callTool(params, undefined, options) },
	...['legacy', 'auto', { pin: '2026-07-28' }].map((mode) => ({
		name: `v2 ${mode.pin ? 'pinned' : mode}`,
		make: () => new ClientV2(info, { versionNegotiation: { mode } }),
		Transport: StdioV2,
		call: (client, params, options) => client.callTool(params, options),
	})),
];

// A session of a client: client, tool(name, arguments, options), and what the transport complained about.
async function connect({ make, Transport, call }) {
	const client = make();
	const complaints = [];
	client.onerror = (error) => complaints.push(error);
	await client.connect(new Transport({ ...service.stdio, stderr: 'inherit' }));
	const tool = (name, args = {}, options = undefined) => call(client, { name, arguments: args }, options);
	const close = async () => {
		await client.close();
		assert.deepEqual(complaints, []);
	};
	return { client, tool, close };
}

for (const kind of clients) {
	const sandbox = `stdio-${kind.name.replace(' ', '-')}`;

	test(`SDK ${kind.name} over stdio connects, lists the tools and runs a command`, { skip }, async () => {
		const { client, tool, close } = await connect(kind);
		assert.equal(client.getServerVersion().name, 'spoolbox');
		const { tools } = await client.listTools();
		assert.ok(tools.some(({ name }) => name === 'exec'));
		const result = await tool('exec', { sandbox, command: 'echo 中文; exit 4' });
		assert.notEqual(result.isError, true);
		assert.equal(result.structuredContent.stdout, '中文\n');
		assert.equal(result.structuredContent.exit_code, 4);
		await close();
	});

	test(`SDK ${kind.name} over stdio sees failures as such`, { skip }, async () => {
		const { tool, close } = await connect(kind);
		const result = await tool('read_text', { sandbox: 'nosuch', path: 'x' });
		assert.equal(result.isError, true);
		assert.match(textOf(result), /nosuch/);
		await assert.rejects(tool('no_such_tool'), /no_such_tool|-32602/);
		await close();
	});

	test(`SDK ${kind.name} over stdio receives progress`, { skip }, async () => {
		const { tool, close } = await connect(kind);
		const seen = [];
		await tool('exec', { sandbox, command: 'for i in 1 2 3 4; do echo line $i; sleep 0.5; done' },
			{ onprogress: (progress) => seen.push(progress) });
		assert.ok(seen.length >= 2, `${seen.length} notifications`);
		assert.match(seen.at(-1).message, /^line [234]$/);
		await close();
	});

	test(`SDK ${kind.name} over stdio can give a call up, which ends the command, and go on`, { skip }, async () => {
		const { tool, close } = await connect(kind);
		const begin = Date.now();
		await assert.rejects(tool('exec', { sandbox, command: 'sleep 20' }, { signal: AbortSignal.timeout(700) }));
		const next = await tool('exec', { sandbox, command: 'pgrep -fc "^sleep 20$" || true' });
		assert.equal(next.structuredContent.stdout, '0\n');
		assert.ok(Date.now() - begin < 10000);
		await close();
	});

	test(`SDK ${kind.name} over stdio finds its task again after a reconnect, and nothing else of the session`, { skip }, async () => {
		const first = await connect(kind);
		const made = (await first.tool('create_sandbox')).structuredContent;
		const started = (await first.tool('start_task', { command: 'printf BEFORE; sleep 1; printf AFTER; exit 3' })).structuredContent;
		assert.equal(started.sandbox_id, made.sandbox_id);
		const other = (await first.tool('create_sandbox')).structuredContent;
		await first.close();
		const second = await connect(kind);
		const handle = { sandbox_id: started.sandbox_id, task_id: started.task_id };
		let task;
		do {
			task = (await second.tool('get_task', { ...handle, stdout_offset: 6, wait: 20 })).structuredContent;
		} while (task.state === 'running');
		assert.deepEqual([task.state, task.exit_code, task.stdout], ['failed', 3, 'AFTER']);
		const { sandboxes } = (await second.tool('list_sandboxes')).structuredContent;
		assert.ok(!sandboxes.some(({ sandbox_id }) => sandbox_id === other.sandbox_id));
		await second.tool('kill_sandbox', { sandbox_id: started.sandbox_id });
		await second.close();
	});
}

test('a client over stdio and one over HTTP see the same sandbox', { skip }, async () => {
	const { tool, close } = await connect(clients[0]);
	await tool('write_text', { sandbox: 'both', path: 'note', content: 'from stdio' });
	const response = await fetch(service.url, {
		method: 'POST',
		headers: { Authorization: `Bearer ${service.token}`, 'Content-Type': 'application/json', 'MCP-Protocol-Version': '2025-11-25' },
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read_text', arguments: { sandbox: 'both', path: 'note' } } }),
	});
	assert.equal((await response.json()).result.structuredContent.content, 'from stdio');
	await close();
});
