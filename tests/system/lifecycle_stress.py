#!/usr/bin/env python3
"""Eight processes at five names: commands, tasks, uploads, files, creates, destroys and passes of
the reaper, all at once, some passes killed in the middle. Each process keeps a journal of what it
asked and was told. When all are through, an oracle compares the journals, the lines of the reaper,
the database and the spool, and says what does not fit.

	lifecycle_stress.py run REAPER URL SECONDS [SEED]
	lifecycle_stress.py judge REAPER SERVICE-LOG     after the service was stopped

Runs as the service user with the settings of the service in its environment; needs nothing but the
standard library. Exit status 0: everything fits; 1: something does not; 2: it could not be tried.
"""

import calendar
import collections
import hashlib
import http.client
import json
import os
import random
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import traceback
import urllib.parse

CLIENTS = 8
NAMES = ["n0", "n1", "n2", "n3", "n4"]
TERMINAL = {"succeeded", "failed", "cancelled", "timed_out", "unknown"}
# What a refusal may be called when somebody else was faster; all of them are worth another try.
RACES = {"busy", "lost", "destroyed", "timeout", "quota"}
# What is simply so: the thing is not there (any more), or differs from what is asked.
PLAIN = {"not_found", "gone", "exists"}
# A stamp of use may be so old (sandbox_use.c), and clocks of two processes differ by a little.
STAMP_S = 5.0
SLACK_S = 0.2
# Longer than SMCP_IDLE_REMOVE_SECONDS.
LONG_S = 11
# Calls may take long on a machine that is busy with other tests.
CALL_S = 90


class Refused(Exception):
	"""A tool said no, in its own words."""

	def __init__(self, body):
		super().__init__(json.dumps(body))
		self.body = body


class Client:
	def __init__(self, url, token, number, random_source, journal):
		self.host = urllib.parse.urlsplit(url).netloc
		self.token, self.number, self.random, self.journal = token, number, random_source, journal
		self.sequence = 0

	def note(self, what, **facts):
		facts["what"] = what
		facts["client"] = self.number
		self.journal.write(json.dumps(facts) + "\n")
		self.journal.flush()

	def request(self, method, path, body, headers, pause=0):
		"""Sends half of the body, pauses, sends the rest."""
		connection = http.client.HTTPConnection(self.host, timeout=CALL_S)
		try:
			if pause:
				connection.putrequest(method, path)
				connection.putheader("Content-Length", str(len(body)))
				connection.endheaders(body[:len(body) // 2])
				time.sleep(pause)
				connection.send(body[len(body) // 2:])
			else:
				connection.request(method, path, body, headers)
			response = connection.getresponse()
			return response.status, response.read()
		finally:
			connection.close()

	def call(self, tool, **arguments):
		"""The structured result; raises Refused. Notes what was refused."""
		body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": {"name": tool, "arguments": arguments}})
		status, text = self.request("POST", "/mcp", body, {
			"Authorization": "Bearer " + self.token, "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"})
		if status != 200:
			self.note("fault", text=f"{tool}: status {status}: {text[:300]!r}")
			raise Refused({"error": "http", "message": str(status)})
		answer = json.loads(text)
		if "result" not in answer:
			self.note("fault", text=f"{tool}: {text[:300]!r}")
			raise Refused({"error": "rpc", "message": text[:300].decode()})
		result = answer["result"]
		if not result.get("isError"):
			return result["structuredContent"]
		refusal = result.get("structuredContent") or json.loads(result["content"][0]["text"])
		self.note("refused", tool=tool, arguments=arguments, refusal=refusal, at=time.time())
		raise Refused(refusal)

	def fresh(self, kind):
		self.sequence += 1
		return f"{kind}-{self.number}-{self.sequence}"

	# --- what a client does ------------------------------------------------------------------

	def made(self, result, was_created):
		"""Whoever makes an incarnation marks it, by its id: no later one can get the mark."""
		if not was_created:
			return
		self.note("created", id=result["sandbox_id"], name=result.get("sandbox", result.get("name")),
			took_over="kept" in result.get("note", ""))
		try:
			self.call("write_text", sandbox_id=result["sandbox_id"], path="marker",
				content=result["sandbox_id"])
		except Refused:
			pass

	def use(self, kind, name, began, result, **facts):
		self.note(kind, name=name, id=result["sandbox_id"], said=result["sandbox"], began=began,
			ended=time.time(), **facts)
		self.made(result, result.get("sandbox_created", False))

	def exec(self, name, seconds=0):
		began = time.time()
		handed_over = seconds > 1
		result = self.call("exec", sandbox=name, timeout=60,
			command=f"date +%s.%N; sleep {seconds}; cat marker 2>/dev/null; echo; date +%s.%N")
		if result["status"] == "running":
			self.use("task", name, began, result, task=result["job_id"], state="running")
			return
		lines = result["stdout"].split("\n")
		self.use("exec", name, began, result, inside=[float(lines[0]), float(lines[-2])],
			marker=lines[1], exit_code=result["exit_code"], handed_over=handed_over)

	def start(self, name):
		began = time.time()
		seconds = self.random.choice([0, 0.1, 1, 4] * 5 + [LONG_S])
		command = f"sleep {seconds}; cat marker; exit {self.random.choice([0, 0, 3])}"
		if self.random.random() < 0.5:
			result = self.call("run_background", sandbox=name, command=command, timeout=30)
			task = result["job_id"]
		else:
			result = self.call("start_task", sandbox_id=name, command=command, timeout=30)
			task = result["task_id"]
		self.use("task", name, began, result, task=task, state=result.get("state", "running"))
		self.last_task = (result["sandbox_id"], task)

	def look(self, name):
		if not hasattr(self, "last_task"):
			return
		sandbox, task = self.last_task
		began = time.time()
		tool = self.random.choice(["get_task", "get_task", "get_job", "cancel_task"])
		if tool == "get_job":
			result = self.call(tool, job_id=task, wait=0)
		else:
			result = self.call(tool, sandbox_id=sandbox, task_id=task)
		marker = result.get("stdout", result.get("log_tail", "")).strip()
		self.note("look", task=task, id=result.get("sandbox_id", sandbox), state=result["state"],
			began=began, ended=time.time(), marker=marker if len(marker) == 32 else "")

	def write(self, name):
		began = time.time()
		path = self.fresh("text")
		text = f"{path} {self.random.random()}\n" * self.random.choice([1, 1000])
		result = self.call("write_text", sandbox=name, path=path, content=text)
		self.use("file", name, began, result, path=path,
			hash=hashlib.sha256(text.encode()).hexdigest())
		self.last_file = (result["sandbox_id"], path, text)

	def read(self, name):
		if not hasattr(self, "last_file"):
			return
		sandbox, path, text = self.last_file
		began = time.time()
		result = self.call("read_text", sandbox_id=sandbox, path=path)
		self.note("read", id=sandbox, began=began, ended=time.time(),
			same=result["content"].split("\n")[0] == text.split("\n")[0])

	def upload(self, name):
		path = self.fresh("upload")
		body = self.random.randbytes(self.random.choice([1, 10, 5000, 300000]))
		link = self.call("upload_file", sandbox=name, dest=path)
		self.made(link, link.get("sandbox_created", False))
		if self.random.random() < 0.2:
			time.sleep(self.random.random() * 2)
		url = urllib.parse.urlsplit(link["url"])
		# Now and then longer than a sandbox may be idle: while it goes on, it is not.
		pause = LONG_S if len(body) > 1 and self.random.random() < 0.1 else 0
		began = time.time()
		if pause:
			self.note("held", id=link["sandbox_id"], inside=[began + 1, began + pause])
		status, text = self.request("PUT", url.path, body, {}, pause)
		if status in (200, 201):
			self.note("file", name=name, id=link["sandbox_id"], said=link["sandbox"], began=began,
				ended=time.time(), path=path, hash=hashlib.sha256(body).hexdigest())
		else:
			self.note("put_refused", status=status, refusal=json.loads(text), at=time.time())

	def create(self, name):
		began = time.time()
		more = {"timeout": 60} if self.random.random() < 0.1 else {}
		result = self.call("create_sandbox", sandbox=name, **more)
		self.note("use", name=name, id=result["sandbox_id"], said=result["name"], began=began,
			ended=time.time())
		self.made(result, result["created"])

	def destroy(self, name):
		began = time.time()
		delete = self.random.random() < 0.5
		self.note("destroying", name=name, delete=delete, began=began)
		result = self.call("destroy_sandbox", sandbox=name, delete_files=delete)
		self.note("destroyed", name=name, id=result["sandbox_id"], said=result["name"],
			delete=result["files_deleted"], began=began, ended=time.time())

	def reap(self, name):
		"""A pass; one in three is killed at a moment of its life."""
		pass_ = subprocess.Popen([REAPER], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
		killed = self.random.random() < 0.34
		if killed:
			time.sleep(self.random.random() * 0.08)
			pass_.send_signal(signal.SIGKILL)
		said = pass_.communicate()[1].decode()
		self.note("pass", killed=killed, status=pass_.returncode, said=said)

	WEIGHTS = [(exec, 10), (start, 4), (look, 5), (write, 5), (read, 3), (upload, 5), (create, 3),
		(destroy, 1.5), (reap, 4)]

	def round(self):
		name = pick_name(self.random)
		kinds, weights = zip(*self.WEIGHTS)
		action = self.random.choices(kinds, weights)[0]
		try:
			if action is Client.exec:
				self.exec(name, self.random.choice([0, 0, 0, 0.05, 0.5, 2.5]))
			else:
				action(self, name)
		except Refused:
			time.sleep(self.random.random() * 0.05)
		except OSError as problem:
			self.note("fault", text=f"{action.__name__}: {problem!r}")


def pick_name(random_source):
	"""Each name rests for a part of the time, long enough to be stopped, now and then removed."""
	now = time.time() - START
	awake = [name for i, name in enumerate(NAMES)
		if (now + 5 * i) % 25 < (13 if int((now + 5 * i) // 25) % 2 else 17)]
	return random_source.choice(awake or NAMES)


def run_client(url, number, seed, seconds, path):
	with open(path, "w", encoding="utf-8") as journal:
		client = Client(url, os.environ["SMCP_TOKEN"], number, random.Random(f"{seed} {number}"), journal)
		while time.time() < START + seconds:
			client.round()
			time.sleep(client.random.random() * 0.1)


# --- the oracle -------------------------------------------------------------------------------

def log_time(line):
	match = re.match(r"(\S+?)\.(\d+)Z ", line)
	return calendar.timegm(time.strptime(match[1], "%Y-%m-%dT%H:%M:%S")) + float("0." + match[2])


class Oracle:
	def __init__(self, journals, service_log):
		self.faults = []
		self.events = [json.loads(line) for path in journals for line in open(path, encoding="utf-8")]
		with open(service_log, encoding="utf-8", errors="replace") as log:
			self.lines = [line for line in log if re.match(r"\S+Z ", line)]
		for event in self.of("pass"):
			self.lines += [line for line in event["said"].split("\n") if re.match(r"\S+Z ", line)]
		self.files_of = {}  # incarnation -> the directory that it works in
		self.name_of = {}
		self.removed = collections.defaultdict(list)  # incarnation -> [(time, why)], with its files
		self.counts = collections.Counter(event["what"] for event in self.events)
		spool = os.environ["SMCP_SPOOL"]
		self.spool = spool
		self.db = sqlite3.connect(f"file:{spool}/state.db?mode=ro", uri=True, timeout=10)

	def of(self, *kinds):
		return [event for event in self.events if event["what"] in kinds]

	def fault(self, text):
		self.faults.append(text)

	def rows(self, sql):
		return self.db.execute(sql).fetchall()

	def read_removals(self):
		for line in self.lines:
			match = re.search(r" reap action=remove id=(\w+) .*why=\"([^\"]*)\"", line)
			if match:
				self.removed[match[1]].append((log_time(line), match[2]))
			match = re.search(r" sandbox_expired id=(\w+) ", line)
			if match:
				self.removed[match[1]].append((log_time(line), "expired"))
		for event in self.of("destroyed"):
			if event["delete"]:
				self.removed[event["id"]].append((event["ended"], "destroyed by request"))
		self.ended = set(self.removed) | {event["id"] for event in self.of("destroyed")}
		# A destroy that answered with an error may have come half way.
		self.unsure = {event["arguments"]["sandbox"] for event in self.of("refused")
			if event["tool"] == "destroy_sandbox" and event["arguments"]["delete_files"]
			and event["refusal"]["error"] not in PLAIN}

	def read_incarnations(self, seen):
		self.files_of.update(seen)
		for id_, files, name in self.rows("SELECT id, files_id, name FROM sandbox"):
			self.files_of[id_] = files
			self.name_of[id_] = name
		for event in self.of("created"):
			self.name_of[event["id"]] = event["name"]
			if not event["took_over"]:
				self.files_of.setdefault(event["id"], event["id"])

	# --- each claim ---------------------------------------------------------------------------

	def check_service(self):
		for event in self.of("fault"):
			self.fault(event["text"])
		for line in self.lines:
			if " error " in line:
				self.fault(f"logged as an error: {line.strip()}")
		for event in self.of("pass"):
			if not event["killed"] and event["status"] != 0:
				self.fault(f"a pass failed: {event['said']}")

	def check_refusals(self):
		for event in self.of("refused", "put_refused"):
			refusal = event["refusal"]
			code = refusal.get("error")
			shown = f"{event.get('tool', 'PUT')} {event.get('arguments', '')}: {refusal}"
			if not refusal.get("message") or not (refusal.get("fix") or refusal.get("hint")):
				self.fault(f"a refusal that says too little: {shown}")
			if code not in RACES | PLAIN:
				self.fault(f"not a refusal of a race: {shown}")
			# One that says what became of the command has run it: nothing to try again blindly.
			ran = "stdout" in refusal
			if code in RACES and event["what"] == "refused" and not ran and not refusal.get("retryable"):
				self.fault(f"a lost race that is not retryable: {shown}")
			if "meantime" in refusal.get("message", "") and not refusal.get("retryable"):
				self.fault(f"a lost race that is not retryable: {shown}")

	def check_attribution(self):
		gone_at = {event["id"]: event["ended"] for event in self.of("destroyed")}
		for event in self.of("exec", "task", "file", "use", "read"):
			if "name" in event and event["said"] != event["name"]:
				self.fault(f"asked for {event['name']}, done in {event['said']}: {event}")
			if event["began"] > gone_at.get(event["id"], float("inf")):
				self.fault(f"done in an incarnation that was destroyed before: {event}")
		for event in self.of("read"):
			if not event["same"]:
				self.fault(f"read something else than was written: {event}")
		for event in self.of("exec", "look"):
			marker = event["marker"]
			if marker in ("", event["id"]):
				continue
			# Until the new mark is there, taken-over files show that of the incarnation before.
			if self.files_of.get(marker) != self.files_of.get(event["id"]):
				self.fault(f"the mark of another incarnation: {event}")

	def uses(self):
		"""When each incarnation was in use for certain: (begin, end); and whether that renews."""
		uses = collections.defaultdict(list)
		for event in self.of("exec", "file", "use", "read", "task", "held"):
			begin, end = event.get("inside") or (event["began"], event["began"])
			uses[event["id"]].append((begin, end, event["what"] != "task"))
		return uses

	def check_in_use(self):
		uses = self.uses()
		for line in self.lines:
			match = re.search(r" reap action=(remove|stop) id=(\w+) .*(limit|lifetime)_s=(\d+) ", line)
			if not match or "kept_s" in line:
				continue
			at, limit = log_time(line), float(match[4])
			for begin, end, renews in uses[match[2]]:
				during = begin < at - SLACK_S and end > at + SLACK_S
				recent = end < at and at - end < limit - STAMP_S - SLACK_S
				if during or (recent and (renews or match[3] == "limit")):
					self.fault(f"{match[1]} while in use or just after ({begin}..{end}): {line}")

	def check_tasks(self):
		states = collections.defaultdict(list)
		for event in self.of("task", "look"):
			states[event["task"]].append((event["began"], event["ended"], event["state"]))
		final = dict(self.rows("SELECT id, state FROM task"))
		for task, seen in states.items():
			ends = {state for _, _, state in seen if state in TERMINAL}
			if task in final:
				ends.add(final[task])
			if len(ends) > 1:
				self.fault(f"task {task} ended in more than one way: {ends}")
			over = min((ended for _, ended, state in seen if state in TERMINAL), default=None)
			for began, _, state in seen:
				if over is not None and began > over and state not in TERMINAL:
					self.fault(f"task {task} is {state} after its end")
			self.check_task_row(task, seen, final)
		return len(states)

	def check_task_row(self, task, seen, final):
		if final.get(task) == "running":
			self.fault(f"task {task} still reads running")
		owner = {event["id"] for event in self.of("task") if event["task"] == task}
		if final.get(task) == "unknown" and not any(
				id_ in self.ended or self.name_of.get(id_) in self.unsure for id_ in owner):
			self.fault(f"task {task} was lost, and its sandbox {owner} neither destroyed nor removed")
		live = {row[0] for row in self.rows("SELECT id FROM sandbox WHERE state = 'live'")}
		if task not in final and owner & live:
			self.fault(f"the row of task {task} is away, and its sandbox is live")

	def holders(self):
		"""Directory -> whether a live or kept row has it."""
		return {row[0] for row in self.rows("SELECT files_id FROM sandbox WHERE state <> 'gone'")}

	def is_explained(self, id_, files, since):
		"""Whether the files went with an incarnation that was removed with them."""
		users = {other for other, dir_ in self.files_of.items() if dir_ == files} | {id_}
		if any(at >= since - SLACK_S for user in users for at, _ in self.removed[user]):
			return True
		return any(self.name_of.get(user) in self.unsure for user in users)

	def check_files(self):
		held = self.holders()
		there = 0
		for event in self.of("file"):
			files = self.files_of.get(event["id"], event["id"])
			path = f"{self.spool}/data/{files}/workspace/{event['path']}"
			try:
				with open(path, "rb") as file:
					same = hashlib.sha256(file.read()).hexdigest() == event["hash"]
				there += 1
				if not same:
					self.fault(f"not whole: {event}")
			except OSError:
				if files in held or not self.is_explained(event["id"], files, event["began"]):
					self.fault(f"acknowledged, and lost without a removal that was asked for or "
						f"logged: {event} files={files} held={files in held}")
		return there

	def check_spool(self):
		"""What is on disk is what the database knows, nothing waits, no lock is held."""
		live = {row[0] for row in self.rows("SELECT id FROM sandbox WHERE state = 'live'")}
		known = {row[0] for row in self.rows("SELECT id FROM task")}
		for directory, wanted in [("run", live), ("data", self.holders()), ("tasks", known)]:
			there = {name for name in os.listdir(f"{self.spool}/{directory}")
				if name not in (".trash", "spool.id")}
			if there - wanted:
				self.fault(f"left over in {directory}: {sorted(there - wanted)}")
			if directory == "data" and wanted - there:
				self.fault(f"missing in data: {sorted(wanted - there)}")
			trash = f"{self.spool}/{directory}/.trash"
			if os.path.isdir(trash) and os.listdir(trash):
				self.fault(f"left over in the trash of {directory}: {os.listdir(trash)}")
		for files in self.holders():
			incoming = f"{self.spool}/data/{files}/incoming"
			if os.path.isdir(incoming) and os.listdir(incoming):
				self.fault(f"uploads left over: {files} {os.listdir(incoming)}")
		for id_ in os.listdir(f"{self.spool}/run"):
			for lock in ("use", "start", "edit"):
				if is_locked(f"{self.spool}/run/{id_}/{lock}"):
					self.fault(f"the lock {lock} of {id_} is held")
		for task in os.listdir(f"{self.spool}/tasks"):
			if is_locked(f"{self.spool}/tasks/{task}/alive"):
				self.fault(f"the lock of task {task} is held")
		if is_locked(f"{self.spool}/reaper.lock"):
			self.fault("reaper.lock is held")

	def check_database(self):
		if self.rows("PRAGMA integrity_check") != [("ok",)] or self.rows("PRAGMA foreign_key_check"):
			self.fault("the database is damaged")
		for table, column in [("task", "sandbox_id"), ("link", "sandbox_id")]:
			if self.rows(f"SELECT 1 FROM {table} WHERE {column} NOT IN (SELECT id FROM sandbox)"):
				self.fault(f"a {table} without its sandbox")

	def count_lines(self, part):
		return sum(1 for line in self.lines if part in line)

	def judge(self, seen):
		self.read_incarnations(seen)
		self.read_removals()
		self.check_service()
		self.check_refusals()
		self.check_attribution()
		self.check_in_use()
		tasks = self.check_tasks()
		there = self.check_files()
		self.check_spool()
		self.check_database()
		refusals = collections.Counter(event["refusal"].get("error")
			for event in self.of("refused", "put_refused"))
		print(f"# {dict(self.counts)}")
		print(f"# refused: {dict(refusals)}")
		print(f"# incarnations {len(self.files_of)}, tasks {tasks}, files {self.counts['file']} of which "
			f"{there} are there; idle stops {self.count_lines('reap action=stop')}, idle removals "
			f"{self.count_lines('it was not used for long')}, lifetimes "
			f"{self.count_lines('its lifetime is over') + self.count_lines('sandbox_expired')}, kept "
			f"{self.count_lines('its files were kept')}, finished for the dead "
			f"{self.count_lines('action=finish_removal')}, passes killed "
			f"{sum(event['killed'] for event in self.of('pass'))}")
		for fault in self.faults[:40]:
			print(f"# FAULT {fault}")
		return self.faults


def is_locked(path):
	"""Asks without taking; 36 is F_OFD_GETLK."""
	import fcntl
	try:
		fd = os.open(path, os.O_RDWR)
	except FileNotFoundError:
		return False
	try:
		asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
		return struct.unpack("hhqqi4x", fcntl.fcntl(fd, 36, asked))[0] != fcntl.F_UNLCK
	finally:
		os.close(fd)


def watch(children, seen):
	"""Waits for the clients. Rows of what is gone are forgotten after a while; they are noted."""
	spool = os.environ["SMCP_SPOOL"]
	db = sqlite3.connect(f"file:{spool}/state.db?mode=ro", uri=True, timeout=10)
	left, ok = set(children), True
	while left:
		for id_, files in db.execute("SELECT id, files_id FROM sandbox"):
			seen[id_] = files
		time.sleep(0.5)
		for pid in list(left):
			done, status = os.waitpid(pid, os.WNOHANG)
			if done:
				left.discard(pid)
				ok = ok and status == 0
	db.close()
	return ok


def settle():
	"""Lets the last tasks end; the last pass takes everything idle for usual, so it removes nothing."""
	spool = os.environ["SMCP_SPOOL"]
	usual = dict(os.environ, SMCP_IDLE_STOP_SECONDS="7200", SMCP_IDLE_REMOVE_SECONDS="604800")
	for _ in range(60):
		if not any(is_locked(f"{spool}/tasks/{task}/alive") for task in os.listdir(f"{spool}/tasks")):
			break
		time.sleep(0.5)
	for _ in range(2):
		result = subprocess.run([REAPER], env=usual, stderr=subprocess.PIPE, check=False)
		if result.returncode != 0:
			print("# FAULT the last pass failed: " + result.stderr.decode())
	return result.stderr.decode()


def run(url, seconds, seed):
	"""Starts the clients and waits for them; what they noted is in files."""
	print(f"# seed {seed}", flush=True)
	children = []
	for number in range(CLIENTS):
		pid = os.fork()
		if pid == 0:
			status = 1
			try:
				run_client(url, number, seed, seconds, JOURNAL + str(number))
				status = 0
			except Exception:
				traceback.print_exc()
			finally:
				os._exit(status)
		children.append(pid)
	seen = {}
	ok = watch(children, seen)
	with open(JOURNAL + "seen", "w", encoding="utf-8") as file:
		json.dump(seen, file)
	return 0 if ok else 2


def judge(service_log):
	last = settle()
	oracle = Oracle([JOURNAL + str(number) for number in range(CLIENTS)], service_log)
	oracle.lines += [line for line in last.split("\n") if re.match(r"\S+Z ", line)]
	with open(JOURNAL + "seen", encoding="utf-8") as file:
		return 1 if oracle.judge(json.load(file)) else 0


def main():
	if sys.argv[1] == "run":
		return run(sys.argv[3], float(sys.argv[4]),
			sys.argv[5] if len(sys.argv) > 5 else str(time.time_ns()))
	return judge(sys.argv[3])


REAPER = sys.argv[2]
JOURNAL = os.environ["TMPDIR"] + "/journal."
START = time.time()
if __name__ == "__main__":
	sys.exit(main())
