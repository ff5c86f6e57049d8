// The official inspector's command line, in each of its eras.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startService } from './service.mjs';

// It is installed with the conformance suite; see contrib/check.
const inspector = fileURLToPath(new URL('../conformance/node_modules/.bin/mcp-inspector', import.meta.url));
const missing = await access(inspector).then(() => false, () => 'tests/conformance/node_modules has no inspector (npm ci)');
const service = missing ? { skip: missing } : await startService();
const skip = service.skip ?? false;
const home = await mkdtemp(join(tmpdir(), 'spoolbox-inspector-'));
after(async () => {
	await service.stop?.();
	await rm(home, { recursive: true });
});

// Resolves to { code, result, text }: the exit code, what it printed as JSON, and all it printed. The last argument may be
// options of execFile.
function inspect(era, ...args) {
	const options = typeof args.at(-1) === 'object' ? args.pop() : {};
	const fixed = [inspector, '--cli', service.url.href, '--transport', 'http', '--format', 'json', '--protocol-era', era,
		'--stored-auth-only', '--header', `Authorization: Bearer ${service.token}`];
	return new Promise((resolve) => {
		execFile(process.execPath, [...fixed, ...args], { env: { PATH: process.env.PATH, HOME: home }, timeout: 60000, ...options },
			(error, stdout, stderr) => {
				let result;
				try {
					result = JSON.parse(stdout).result ?? JSON.parse(stdout);
				} catch {
					result = undefined;
				}
				resolve({ code: error?.code ?? 0, result, text: stdout + stderr });
			});
	});
}

// checklist 96
for (const era of ['legacy', 'auto', 'modern']) {
	test(`the inspector (${era}) lists the tools and finds no fault in their schemas`, { skip }, async () => {
		const { code, result, text } = await inspect(era, '--method', 'tools/list', '--strict');
		assert.equal(code, 0, text);
		assert.ok(result.tools.some(({ name }) => name === 'exec'));
	});

	test(`the inspector (${era}) calls tools, and sees failures as such`, { skip }, async () => {
		const call = (name, args) => inspect(era, '--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args));
		const done = await call('write_text', { sandbox: `inspector-${era}`, path: 'a/文.txt', content: 'one\n' });
		assert.equal(done.code, 0, done.text);
		assert.equal(done.result.structuredContent.path, '/workspace/a/文.txt');
		const failed = await call('read_text', { sandbox: 'nosuch', path: 'x' });
		assert.equal(failed.code, 5, failed.text);
		assert.match(failed.text, /nosuch/);
	});

	test(`the inspector (${era}) lists and reads resources, and is told what is not there`, { skip }, async () => {
		const root = `spoolbox://inspector-${era}/`;
		const list = await inspect(era, '--method', 'resources/list');
		assert.equal(list.code, 0, list.text);
		const uri = `${root}a/%E6%96%87.txt`;
		assert.ok(list.result.resources.some((resource) => resource.uri === uri), list.text);
		const read = await inspect(era, '--method', 'resources/read', '--uri', uri);
		assert.equal(read.code, 0, read.text);
		assert.equal(read.result.contents[0].text, 'one\n');
		const none = await inspect(era, '--method', 'resources/read', '--uri', `${root}none`);
		assert.notEqual(none.code, 0);
		assert.match(none.text, /[Rr]esource not found|there is no resource/);
	});

	test(`the inspector (${era}) lists and gets prompts`, { skip }, async () => {
		const list = await inspect(era, '--method', 'prompts/list');
		assert.equal(list.code, 0, list.text);
		const { code, result, text } = await inspect(era, '--method', 'prompts/get', '--prompt-name', 'long_task', '--prompt-args', 'task=wait');
		assert.equal(code, 0, text);
		assert.match(result.messages[0].content.text, /run_background/);
	});
}

// checklist 96: the command line shows no progress, and is given up by ending it.
for (const { era, isOver } of [{ era: 'legacy', isOver: false }, { era: 'modern', isOver: true }]) {
	test(`the inspector (${era}) given up ${isOver ? 'ends' : 'does not end'} its command`, { skip }, async () => {
		const args = (command) => ['--method', 'tools/call', '--tool-name', 'exec', '--tool-args-json',
			JSON.stringify({ sandbox: `inspector-${era}`, command })];
		const slow = await inspect(era, ...args('echo begun >state; sleep 22; echo done >state'), { timeout: 5000 });
		assert.equal(slow.result, undefined, slow.text);
		await new Promise((resolve) => setTimeout(resolve, 22000)); // two keep-alives, and the rest of the command
		const { result, text } = await inspect(era, ...args('cat state'));
		assert.equal(result?.structuredContent.stdout, isOver ? 'begun\n' : 'done\n', text);
	});
}

test('the inspector with a wrong token is refused', { skip }, async () => {
	const { code, text } = await inspect('modern', '--header', 'Authorization: Bearer wrong', '--method', 'tools/list');
	assert.notEqual(code, 0);
	assert.match(text, /401|[Uu]nauthorized|auth/);
});
