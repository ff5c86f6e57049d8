// A running service for the client tests: the harness of the system tests, kept open by a pipe.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = `
	skip() { echo "SKIP $1"; exit 0; }
	source "$1/tests/system/harness.bash"
	srcdir=$1
	cd "$2"
	harness_open && start_service "\${@:3}" || { echo FAILED; exit 1; }
	echo "READY $URL $TOKEN $BIN $SPOOL"
	read -r _
	harness_close
`;

// Takes settings as NAME=value. Resolves to { url, token, stdio, stop }, where stdio is what a stdio transport is to start,
// or to { skip: reason }.
export async function startService(...settings) {
	const root = fileURLToPath(new URL('../..', import.meta.url));
	const child = spawn('bash', ['-c', script, 'service', root, process.cwd(), ...settings],
		{ stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, BATS_TEST_DIRNAME: root } });
	const ended = new Promise((resolve) => child.on('exit', resolve));
	for await (const line of createInterface({ input: child.stdout })) {
		const [word, ...rest] = line.split(' ');
		if (word === 'SKIP')
			return { skip: rest.join(' ') };
		if (word === 'READY') {
			const stop = async () => {
				child.stdin.end();
				const status = await ended;
				if (status !== 0)
					throw new Error(`the service left something behind (status ${status})`);
			};
			const [url, token, bin, spool] = rest;
			const stdio = {
				command: `${bin}/spoolbox`,
				args: ['stdio'],
				env: { SMCP_SPOOL: spool, SMCP_TOKEN: token, SMCP_PUBLIC_BASE_URL: url, SMCP_MIN_FREE_BYTES: '1m', ASAN_OPTIONS: 'detect_leaks=0',
					...Object.fromEntries(settings.map((setting) => setting.split(/=(.*)/s, 2))) },
			};
			return { url: new URL(`${url}/mcp`), token, stdio, stop };
		}
		break;
	}
	throw new Error('the service did not start');
}

// The first text block of a tool result, and what it says as JSON.
export function textOf(result) {
	return result.content.find((block) => block.type === 'text').text;
}
