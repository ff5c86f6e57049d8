// What the server offers beside tools, as the official SDKs of both generations see it: files of sandboxes as resources,
// prompts, completion, and the question before files are deleted.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, test } from 'node:test';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { startService, textOf } from './service.mjs';

const service = await startService('SMCP_CONFIRM_DESTROY=files');
const skip = service.skip ?? false;
after(() => service.stop?.());

// Sandboxes see the packages of this machine.
const drawsPlots = spawnSync('/usr/bin/python3', ['-Ic', 'import matplotlib']).status === 0;

const info = { name: 'spoolbox-test', version: '1' };
const headers = () => ({ requestInit: { headers: { Authorization: `Bearer ${service.token}` } } });
const v2 = (mode, Transport = HttpV2) => ({
	name: `v2 ${mode.pin ? 'pinned' : mode}${Transport === HttpV2 ? '' : ' over stdio'}`,
	isModern: mode !== 'legacy',
	make: (options) => new ClientV2(info, { ...options, versionNegotiation: { mode } }),
	transport: () => (Transport === HttpV2 ? new HttpV2(service.url, headers()) : new StdioV2({ ...service.stdio, stderr: 'inherit' })),
	call: (client, params, options) => client.callTool(params, options),
});
const clients = [
	{
		name: 'v1',
		isModern: false,
		make: (options) => new ClientV1(info, options),
		transport: () => new HttpV1(service.url, headers()),
		call: (client, params, options) => client.callTool(params, undefined, options),
	},
	v2('legacy'), v2('auto'), v2({ pin: '2026-07-28' }), v2('auto', StdioV2),
];

async function connect(kind, options = {}) {
	const client = kind.make(options);
	await client.connect(kind.transport());
	const tool = async (name, args) => {
		const result = await kind.call(client, { name, arguments: args });
		assert.notEqual(result.isError, true, textOf(result));
		return result.structuredContent;
	};
	return { client, tool, close: () => client.close() };
}

// All pages of a list, asked for one by one where the client leaves that to its user.
async function listAll(client) {
	const resources = [];
	let cursor;
	do {
		const page = await client.listResources(cursor === undefined ? undefined : { cursor });
		resources.push(...page.resources);
		cursor = page.nextCursor;
	} while (cursor !== undefined);
	return resources;
}

for (const kind of clients) {
	const sandbox = `offer-${kind.name.replaceAll(' ', '-')}`;
	const root = `spoolbox://${sandbox}/`;
	const run = (name, body) => test(`SDK ${kind.name} ${name}`, { skip }, body);

	run('learns that there are resources, prompts and completion', async () => {
		const { client, close } = await connect(kind);
		const capabilities = client.getServerCapabilities();
		for (const name of ['tools', 'resources', 'prompts', 'completions'])
			assert.ok(capabilities[name], name);
		await close();
	});

	run('lists the files of a sandbox page by page, each once', async () => {
		const { client, tool, close } = await connect(kind);
		await tool('exec', { sandbox, command: 'mkdir d; for i in $(seq 120); do echo $i >d/$i.txt; done; echo 中 >中文.md; touch .no' });
		const resources = (await listAll(client)).filter(({ uri }) => uri.startsWith(root));
		const uris = resources.map(({ uri }) => uri);
		assert.equal(uris.length, 123);
		assert.equal(new Set(uris).size, 123);
		assert.equal(uris[0], root);
		assert.equal(uris[1], `${root}d/`);
		assert.equal(uris.at(-1), `${root}%E4%B8%AD%E6%96%87.md`);
		const last = resources.at(-1);
		assert.deepEqual([last.name, last.mimeType, last.size], ['中文.md', 'text/markdown', 4]);
		assert.ok(Date.now() - Date.parse(last.annotations.lastModified) < 600000);
		await close();
	});

	// checklist 62, 96
	run('reads text, bytes and directories', async () => {
		const { client, tool, close } = await connect(kind);
		await tool('exec', { sandbox, command: String.raw`printf '\211PNG\000' >a.png` });
		const read = async (path) => (await client.readResource({ uri: root + path })).contents;
		assert.deepEqual(await read('%E4%B8%AD%E6%96%87.md'),
			[{ uri: `${root}%E4%B8%AD%E6%96%87.md`, mimeType: 'text/markdown', text: '中\n' }]);
		assert.deepEqual(await read('a.png'), [{ uri: `${root}a.png`, mimeType: 'image/png', blob: 'iVBORwA=' }]);
		const [directory] = await read('');
		const { entries, total } = JSON.parse(directory.text);
		assert.equal(directory.mimeType, 'application/json');
		assert.equal(total, 4);
		assert.deepEqual(entries.find(({ name }) => name === 'd').uri, `${root}d/`);
		await close();
	});

	run('is told when there is nothing to read', async () => {
		const { client, tool, close } = await connect(kind);
		await tool('exec', { sandbox, command: 'ln -sf /etc/passwd out; truncate -s 2m big.bin' });
		for (const path of ['none', 'out', '..%2F..%2Fstate.db', '%00'])
			await assert.rejects(client.readResource({ uri: root + path }), (error) => {
				assert.equal(error.code, kind.name === 'v1' ? -32002 : -32602); // v2 turns the old code into the new one
				assert.match(error.message, /there is no resource|[Rr]esource not found/);
				return true;
			});
		await assert.rejects(client.readResource({ uri: `${root}big.bin` }), /1048576[^]*download_file/);
		await assert.rejects(client.listResources({ cursor: 'bm9uZQ' }), /cursor/);
		await close();
	});

	run('fills in the template', async () => {
		const { client, close } = await connect(kind);
		const { resourceTemplates } = await client.listResourceTemplates();
		assert.deepEqual(resourceTemplates.map(({ uriTemplate }) => uriTemplate), ['spoolbox://{sandbox}/{+path}']);
		const ref = { type: 'ref/resource', uri: resourceTemplates[0].uriTemplate };
		const complete = async (name, value, context) =>
			(await client.complete({ ref, argument: { name, value }, ...context })).completion.values;
		assert.deepEqual(await complete('sandbox', sandbox), [sandbox]);
		assert.deepEqual(await complete('path', 'd/11', { context: { arguments: { sandbox } } }),
			['d/11.txt', ...Array.from({ length: 10 }, (_, i) => `d/11${i}.txt`)]);
		await close();
	});

	run('runs Python and gets its plot as an image and its files as resources', async (t) => {
		if (!drawsPlots) {
			assert.notEqual(process.env.STRICT, '1', 'python3 has no matplotlib (apt-get install python3-matplotlib)');
			return t.skip('python3 has no matplotlib');
		}
		const { client, close } = await connect(kind);
		await client.listTools(); // the client checks structured content against what it learns here
		const code = [
			'import matplotlib.pyplot as plt',
			'plt.plot([1, 4, 9])',
			'open("sums.csv", "w").write("n,sum\\n3,14\\n")',
			'print("drawn")',
			'sum([1, 4, 9])',
		].join('\n');
		const result = await kind.call(client, { name: 'execute_python', arguments: { code, timeout_ms: 60000 } });
		assert.notEqual(result.isError, true, textOf(result));
		const { stdout, value, images, artifacts, exit_code, state_preserved } = result.structuredContent;
		assert.deepEqual([stdout, value, images, exit_code, state_preserved], ['drawn\n', '14', 1, 0, false]);
		assert.deepEqual(JSON.parse(textOf(result)), result.structuredContent);
		assert.deepEqual(result.content.map(({ type }) => type), ['text', 'image', 'resource_link']);
		const [, image, link] = result.content;
		assert.equal(image.mimeType, 'image/png');
		assert.equal(Buffer.from(image.data, 'base64').subarray(1, 4).toString(), 'PNG');
		assert.deepEqual([link.name, link.mimeType, link.size], ['sums.csv', 'text/csv', 11]);
		const [contents] = (await client.readResource({ uri: link.uri })).contents;
		assert.equal(contents.text, 'n,sum\n3,14\n');
		assert.equal(artifacts[0].uri, link.uri);
		const download = await fetch(artifacts[0].url);
		assert.equal(await download.text(), 'n,sum\n3,14\n');
		assert.equal((await fetch(artifacts[0].url)).status, 410);
		await close();
	});

	run('goes on in a Python session with its sandbox', async () => {
		const { client, tool, close } = await connect(kind);
		const first = await tool('execute_python', { code: 'total = 40', session_id: 'new' });
		const { session_id, sandbox } = first;
		assert.equal(first.state_preserved, true);
		await tool('write_text', { sandbox, path: 'two.txt', content: '2' });
		const second = await tool('execute_python', { code: 'total + int(open("two.txt").read())', session_id, files: ['two.txt'] });
		assert.deepEqual([second.value, second.session_id, second.sandbox], ['42', session_id, sandbox]);
		const failed = await kind.call(client, { name: 'execute_python', arguments: { code: '1', session_id: 'f'.repeat(32) } });
		assert.equal(failed.isError, true);
		assert.match(textOf(failed), /not_found[^]*no Python session/);
		await tool('destroy_sandbox', { sandbox, delete_files: true });
		await close();
	});

	run('gets a prompt with its arguments filled in', async () => {
		const { client, close } = await connect(kind);
		const { prompts } = await client.listPrompts();
		assert.deepEqual(prompts.map(({ name }) => name), ['process_file', 'analyze_data', 'long_task', 'clean_up']);
		assert.deepEqual(prompts[0].arguments.map(({ name, required }) => [name, required ?? false]),
			[['task', true], ['file', false], ['sandbox', false]]);
		const { messages } = await client.getPrompt({ name: 'process_file', arguments: { task: 'count the 行', sandbox } });
		assert.equal(messages.length, 1);
		assert.equal(messages[0].role, 'user');
		assert.match(messages[0].content.text, /count the 行/);
		assert.match(messages[0].content.text, new RegExp(`sandbox ${sandbox},`));
		await assert.rejects(client.getPrompt({ name: 'process_file', arguments: {} }), /task/);
		await assert.rejects(client.getPrompt({ name: 'no_such_prompt' }), /no_such_prompt/);
		const { completion } = await client.complete(
			{ ref: { type: 'ref/prompt', name: 'process_file' }, argument: { name: 'sandbox', value: sandbox.slice(0, -1) } });
		assert.ok(completion.values.includes(sandbox));
		await close();
	});

	// Over HTTP a handshake client cannot be asked: the server keeps no channel to it.
	run(kind.isModern ? 'asks its person before files are deleted' : 'deletes files without a question', async () => {
		const questions = [];
		const { client, tool, close } = await connect(kind, { capabilities: { elicitation: { form: {} } } });
		let answer = { action: 'decline' };
		const handler = async ({ params }) => {
			questions.push(params);
			return answer;
		};
		if (kind.name === 'v1')
			client.setRequestHandler((await import('@modelcontextprotocol/sdk/types.js')).ElicitRequestSchema, handler);
		else
			client.setRequestHandler('elicitation/create', handler);
		const kill = () => kind.call(client, { name: 'kill_sandbox', arguments: { sandbox } });
		if (kind.isModern) {
			const refused = await kill();
			assert.equal(refused.isError, true);
			assert.match(textOf(refused), /nothing was changed/);
			assert.match(questions[0].message, new RegExp(`^Delete sandbox ${sandbox} with all its files\\? It holds 12\\d files`));
			assert.equal((await tool('read_text', { sandbox, path: '中文.md' })).content, '中\n');
			answer = { action: 'accept', content: { delete: true } };
		}
		const done = await kill();
		assert.notEqual(done.isError, true, textOf(done));
		assert.equal(done.structuredContent.files_deleted, true);
		assert.equal(questions.length, kind.isModern ? 2 : 0);
		await assert.rejects(client.readResource({ uri: root }, { cacheMode: 'bypass' }));
		await close();
	});
}

test('a yes that was given for one sandbox deletes no other of its name', { skip }, async () => {
	const kind = clients[3];
	const other = await connect(kind);
	await other.tool('write_text', { sandbox: 'twice', path: 'old', content: 'x' });
	const { client, close } = await connect(kind, { capabilities: { elicitation: { form: {} } } });
	client.setRequestHandler('elicitation/create', async () => {
		await other.tool('destroy_sandbox', { sandbox: 'twice' });
		await other.tool('write_text', { sandbox: 'twice', path: 'new', content: 'y' });
		return { action: 'accept', content: { delete: true } };
	});
	const result = await kind.call(client, { name: 'kill_sandbox', arguments: { sandbox: 'twice' } });
	assert.equal(result.isError, true);
	assert.equal((await other.tool('read_text', { sandbox: 'twice', path: 'new' })).content, 'y');
	await other.close();
	await close();
});
