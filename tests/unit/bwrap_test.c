/* The bubblewrap driver and PID 1, against real sandboxes. */
#include "box_kit.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/json.h"
#include "base/lock.h"
#include "run/wire.h"

static struct kit kit;

static void start(void)
{
	kit_start(&kit);
}

static void end(void)
{
	kit_end(&kit);
}

static void assert_usable(void)
{
	kit_expect(&kit, "echo usable", "usable\n");
}

/* --- commands ---------------------------------------------------------------------------- */

TEST(exit_codes_and_signals_are_told_apart)
{
	start();
	static const char *const program[] = {"true", NULL};
	struct kit_result r = kit_run(&kit, program, "/workspace", NULL, KIT_TIMEOUT);
	ck_ok(r.started, r.err);
	ck_assert_int_eq(r.status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(r.status.code, 0);
	ck_assert_int_eq(r.status.survivors, 0);
	ck_assert_int_gt(r.status.max_rss_kib, 0);
	r = kit_shell(&kit, "exit 137");
	ck_assert_int_eq(r.status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(r.status.code, 137);
	ck_assert_int_eq(r.status.signal, 0);
	r = kit_shell(&kit, "kill -9 $$");
	ck_assert_int_eq(r.status.end, RUNTIME_END_SIGNAL);
	ck_assert_int_eq(r.status.signal, SIGKILL);
	ck_assert_int_eq(r.status.code, 0);
	r = kit_shell(&kit, "kill -SEGV $$");
	ck_assert_int_eq(r.status.signal, SIGSEGV);
	end();
}
TEST_END

TEST(the_environment_is_exactly_what_was_asked_for)
{
	start();
	setenv("SECRET_OF_THE_WORKER", "x", 1);
	static const char *const program[] = {"env", NULL};
	struct kit_result r = kit_run(&kit, program, "/workspace", NULL, KIT_TIMEOUT);
	ck_ok(r.started, r.err);
	ck_assert_str_eq(r.out,
			 "PATH=/usr/local/bin:/usr/bin:/bin\nHOME=/workspace\nLANG=C.UTF-8\n");
	end();
}
TEST_END

TEST(a_command_that_cannot_start_says_what_to_do)
{
	start();
	static const char *const cat[] = {"cat", NULL},
				 *const missing[] = {"no-such-program", NULL},
				 *const plain[] = {"/etc/passwd", NULL},
				 *const script[] = {"/workspace/no-format", NULL};
	struct kit_result r = kit_run(&kit, cat, "/workspace/nowhere", NULL, KIT_TIMEOUT);
	ck_assert(!r.started);
	ck_assert_int_eq(r.err.code, ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(r.err.msg, "\"/workspace/nowhere\" does not exist"));
	r = kit_run(&kit, cat, "/etc/passwd", NULL, KIT_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(r.err.msg, "is not a directory"));
	r = kit_run(&kit, missing, "/workspace", NULL, KIT_TIMEOUT);
	ck_assert(!r.started);
	ck_assert_int_eq(r.err.code, ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(r.err.msg, "\"no-such-program\" was not found"));
	r = kit_run(&kit, plain, "/workspace", NULL, KIT_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(r.err.msg, "is not executable"));
	kit_expect(&kit, "echo junk > no-format; chmod +x no-format", "");
	r = kit_run(&kit, script, "/workspace", NULL, KIT_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(r.err.msg, "is no program"));
	assert_usable();
	end();
}
TEST_END

TEST(too_many_arguments_are_refused_before_anything_runs)
{
	start();
	AUTO_FREE char *longest = xmalloc(WIRE_STRING_MAX + 2);
	memset(longest, 'a', WIRE_STRING_MAX + 1);
	longest[WIRE_STRING_MAX + 1] = '\0';
	const char *const argv[] = {"/bin/echo", longest, NULL};
	struct kit_result r = kit_run(&kit, argv, "/workspace", NULL, KIT_TIMEOUT);
	ck_assert(!r.started);
	ck_assert_int_eq(r.err.code, ERR_TOO_LARGE);
	ck_assert_str_ne(r.err.hint, "");
	longest[WIRE_STRING_MAX] = '\0';
	r = kit_run(&kit, argv, "/workspace", NULL, KIT_TIMEOUT);
	ck_ok(r.started, r.err);
	ck_assert_int_eq(r.out_total, WIRE_STRING_MAX + 1);
	end();
}
TEST_END

TEST(limits_are_in_force)
{
	start();
	kit.limits = (struct runtime_limits){77, 99, 1 << 20, 512 << 20};
	kit_expect(&kit, "ulimit -Hu; ulimit -Hn; ulimit -Hf; ulimit -Hd; ulimit -Hc; umask",
		   "77\n99\n1024\n524288\n0\n0022\n");
	struct kit_result r = kit_shell(&kit, "head -c 2M /dev/zero > big; stat -c %s big");
	ck_assert_str_eq(r.out, "1048576\n");
	end();
}
TEST_END

TEST(signals_that_the_worker_blocks_or_ignores_reach_a_command)
{
	start();
	sigset_t all, before;
	sigfillset(&all);
	signal(SIGTERM, SIG_IGN);
	sigprocmask(SIG_SETMASK, &all, &before);
	struct kit_result r = kit_shell(&kit, "grep -E 'SigBlk|SigIgn' /proc/self/status; kill $$");
	sigprocmask(SIG_SETMASK, &before, NULL);
	ck_assert_str_eq(r.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	ck_assert_int_eq(r.status.end, RUNTIME_END_SIGNAL);
	ck_assert_int_eq(r.status.signal, SIGTERM);
	end();
}
TEST_END

/* --- ending commands --------------------------------------------------------------------- */

/* Shell text that leaves three processes: in a new session, a double fork, and one deaf to TERM.
 * Each sleep carries the marker. */
static const char *escape_line(const char *marker, const char *then)
{
	static char line[512];
	snprintf(
		line, sizeof(line),
		"setsid sh -c 'sleep %s & wait' & (sh -c 'sleep %s & wait' & ) ; "
		"setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep %s; done' & sleep 0.3; %s",
		marker, marker, marker, then);
	return line;
}

TEST(a_timeout_ends_every_descendant)
{
	start();
	const char *marker = kit_marker();
	struct kit_result r = kit_shell_for(&kit, escape_line(marker, "sleep 60"), 800);
	ck_assert_int_eq(r.status.end, RUNTIME_END_TIMEOUT);
	ck_assert(r.status.signal == SIGTERM || r.status.signal == SIGKILL);
	ck_assert_int_ge(r.duration_ms, 750); /* our clock starts a little later */
	ck_assert_int_lt(r.duration_ms, 800 + RUNTIME_GRACE_MS + 2000);
	ck_assert_int_eq(kit_count(marker), 0);
	assert_usable();
	end();
}
TEST_END

TEST(a_command_that_obeys_term_ends_without_the_grace)
{
	start();
	struct kit_result r =
		kit_shell_for(&kit, "trap 'echo bye; exit 3' TERM; sleep 60 & wait", 300);
	ck_assert_int_eq(r.status.end, RUNTIME_END_TIMEOUT);
	ck_assert_str_eq(r.out, "bye\n");
	ck_assert_int_eq(r.status.code, 3);
	ck_assert_int_eq(r.status.signal, SIGTERM);
	ck_assert_int_lt(r.duration_ms, 300 + RUNTIME_GRACE_MS);
	end();
}
TEST_END

static void exec_line(const char *line, struct runtime_exec *exec)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	const char *const argv[] = {"/bin/bash", "-c", line, NULL};
	struct err err = ERR_INIT;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct runtime_command command = {.argv = argv,
					  .env = env,
					  .cwd = "/workspace",
					  .stdin_fd = null_fd,
					  .stdout_fd = null_fd,
					  .stderr_fd = null_fd,
					  .limits = kit.limits};
	ck_ok(kit.runtime->exec(&kit.box, &command, exec, &err), err);
	close(null_fd);
}

TEST(closing_the_connection_ends_every_descendant)
{
	start();
	const char *marker = kit_marker();
	struct runtime_exec exec;
	exec_line(escape_line(marker, "sleep 60"), &exec);
	ck_assert_int_gt(kit_settle(marker, 7), 3);
	close(exec.fd);
	clock_sleep_ms(RUNTIME_GRACE_MS);
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	assert_usable();
	end();
}
TEST_END

TEST(a_cancelled_command_still_reports_its_end)
{
	start();
	struct runtime_exec exec;
	struct runtime_status status;
	exec_line("sleep 60", &exec);
	kit.runtime->cancel(&exec);
	kit.runtime->cancel(&exec);
	kit.runtime->finish(&exec, &status);
	ck_assert_int_eq(status.end, RUNTIME_END_CANCELLED);
	ck_assert_int_eq(status.signal, SIGTERM);
	ck_assert_int_eq(exec.fd, -1);
	end();
}
TEST_END

TEST(survivors_are_counted_and_stay)
{
	start();
	const char *marker = kit_marker();
	char line[256];
	snprintf(line, sizeof(line), "setsid sleep %s & sleep %s & echo hi", marker, marker);
	struct kit_result r = kit_shell(&kit, line);
	ck_assert_int_eq(r.status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(r.status.survivors, 2);
	ck_assert_str_eq(r.out, "hi\n");
	assert_usable();
	ck_assert_int_eq(kit_count(marker), 2);
	/* The next command neither counts nor ends them. */
	r = kit_shell_for(&kit, "sleep 60", 100);
	ck_assert_int_eq(r.status.end, RUNTIME_END_TIMEOUT);
	ck_assert_int_eq(kit_count(marker), 2);
	end();
	ck_assert_int_eq(kit_count(marker), 0);
}
TEST_END

/* Its first thread has ended, so /proc shows it as a zombie; it must be found nevertheless. */
TEST(a_process_whose_first_thread_ended_is_ended_too)
{
	start();
	const char *marker = kit_marker();
	char line[512];
	snprintf(line, sizeof(line),
		 "python3 -c 'import ctypes, os, signal, threading, time\n"
		 "for s in (15, 1): signal.signal(s, signal.SIG_IGN)\n"
		 "def go():\n"
		 "  while os.getppid() != 1: os.spawnlp(os.P_WAIT, \"sleep\", \"sleep\", \"%s\")\n"
		 "threading.Thread(target=go).start()\n"
		 "time.sleep(0.2)\n"
		 "ctypes.CDLL(None).pthread_exit(None)' & sleep 60",
		 marker);
	struct kit_result r = kit_shell_for(&kit, line, 1500);
	ck_assert_int_eq(r.status.end, RUNTIME_END_TIMEOUT);
	ck_assert_int_eq(kit_count(marker), 0);
	assert_usable();
	end();
}
TEST_END

TEST(orphans_leave_no_zombies)
{
	start();
	kit_shell(&kit, "for i in $(seq 150); do (sleep 0.01 &); done");
	clock_sleep_ms(300);
	kit_expect(&kit, "ps -e -o stat= | grep -c Z; true", "0\n");
	end();
}
TEST_END

/* --- hostile commands -------------------------------------------------------------------- */

TEST(a_command_that_kills_everything_is_told_so_and_the_next_one_runs)
{
	static const char *const lines[] = {"kill -9 -1; sleep 60", "kill -9 $PPID; sleep 60",
					    "kill -STOP $PPID; sleep 60"};
	start();
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct kit_result r = kit_shell(&kit, lines[i]);
		ck_assert_int_eq(r.status.end, RUNTIME_END_LOST);
		ck_assert(r.status.swept);
		ck_assert_int_lt(r.duration_ms, 2000);
		kit_expect(&kit, "ps -e -o comm= | grep -c sleep; true", "0\n");
	}
	end();
}
TEST_END

TEST(pid_1_cannot_be_killed_stopped_or_looked_into)
{
	start();
	kit_shell(&kit, "kill -9 1; kill -STOP 1; kill -TERM 1; kill -SEGV 1");
	assert_usable();
	struct kit_result r =
		kit_shell(&kit, "for f in fd root mem environ exe maps; do "
				"head -c 1 /proc/1/$f >/dev/null 2>&1 && echo $f; "
				"ls -L /proc/1/$f/ >/dev/null 2>&1 && echo $f; done; "
				"echo 5 2>/dev/null >/proc/1/oom_score_adj && echo oom; true");
	ck_assert_str_eq(r.out, "");
	kit_expect(&kit, "tr '\\0' ' ' </proc/1/cmdline", "/.init ");
	end();
}
TEST_END

TEST(a_fork_bomb_stays_within_its_limit_and_is_ended)
{
	start();
	kit.limits.processes = 100;
	const char *marker = kit_marker();
	char line[256];
	snprintf(line, sizeof(line),
		 "f() { setsid sleep %s & f | f & }; f 2>/dev/null; while :; do sleep 0.1; done",
		 marker);
	struct kit_result r = kit_shell_for(&kit, line, 1000);
	ck_assert_int_eq(r.status.end, RUNTIME_END_TIMEOUT);
	ck_assert_int_eq(kit_count(marker), 0);
	assert_usable();
	end();
}
TEST_END

TEST(at_the_process_limit_stop_still_works)
{
	start();
	kit.limits.processes = 50;
	/* dash: bash would try again for fifteen seconds. */
	struct kit_result r =
		kit_shell(&kit, "dash -c 'for i in $(seq 100); do sleep 1000 & done'");
	ck_assert_int_ge(r.status.survivors, 30);
	ck_assert_int_lt(r.status.survivors, 50);
	end(); /* asserts success */
}
TEST_END

static int connect_to_init(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/init.sock",
		 kit.box.run_dir_fd);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

TEST(when_pid_1_takes_no_more_commands_it_says_so_and_stop_still_works)
{
	start();
	static const char *const program[] = {"true", NULL};
	int fds[300];
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = connect_to_init();
	struct kit_result r = kit_run(&kit, program, "/workspace", NULL, KIT_TIMEOUT);
	ck_assert(!r.started);
	ck_assert_int_eq(r.err.code, ERR_QUOTA);
	end(); /* asserts success */
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
}
TEST_END

TEST(half_a_request_and_garbage_do_no_harm)
{
	start();
	int fds[40];
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = connect_to_init();
		if (i % 2)
			ck_assert_int_eq(send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL),
					 18);
	}
	assert_usable();
	/* Bytes that are no request are answered at once, silence after a while. */
	struct pollfd answer = {.fd = fds[1], .events = POLLIN};
	ck_assert_int_eq(poll(&answer, 1, 2000), 1);
	answer.fd = fds[0];
	ck_assert_int_eq(poll(&answer, 1, 0), 0);
	ck_assert_int_eq(poll(&answer, 1, 8000), 1);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	assert_usable();
	kit_expect(&kit, "ls /proc | grep -c '^[0-9]*$'", "5\n"); /* init, keeper, bash, ls, grep */
	end();
}
TEST_END

/* --- isolation --------------------------------------------------------------------------- */

TEST(only_three_descriptors_are_visible)
{
	start();
	int extra = open("/etc/passwd", O_RDONLY); /* not even close-on-exec */
	kit_expect(&kit, "echo /proc/self/fd/*; ls /proc/$PPID/fd 2>/dev/null; true",
		   "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n");
	close(extra);
	end();
}
TEST_END

TEST(nothing_is_left_of_privileges)
{
	start();
	kit_expect(&kit, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -d '\\t'",
		   "CapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:0000000000000000\n"
		   "CapBnd:0000000000000000\nCapAmb:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n");
	kit_expect(&kit,
		   "grep -E '^(Cap(Eff|Bnd)|NoNewPrivs|Seccomp:)' /proc/1/status | tr -d '\\t'",
		   "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n");
	kit_expect(&kit,
		   "id -u; id -g; hostname; cat /proc/self/uid_map | tr -s ' ' | cut -d' ' -f2,4",
		   "1000\n1000\nspoolbox\n1000 1\n");
	end();
}
TEST_END

TEST(namespaces_and_mounts_are_refused)
{
	static const char *const lines[] = {
		"unshare -U true",
		"unshare -n true",
		"unshare -m true",
		"unshare -p --fork true",
		"mount -t tmpfs x /tmp",
		"mount -o remount,rw /",
		"umount /proc",
		"nsenter -t 1 -n true",
		"chroot / true",
		"mknod /tmp/x b 8 0",
		"chmod 4755 /workspace/f",
		"chmod 2755 /workspace/f",
		"dmesg",
		"nice -n -5 true 2>&1 | grep -q . && false",
		"touch /x",
		"touch /usr/x",
		"touch /dev/x",
		"touch /etc/x",
		"rm /etc/passwd",
		"touch /run/x",
		"echo x > /.init",
		"cat /etc/shadow",
		"ls /etc/machine-id",
		"ls /home",
		"ls /root",
		"ls /sys",
		"echo 1 > /proc/sys/vm/drop_caches",
		"echo x > /proc/sys/kernel/hostname",
		"echo x > /proc/sys/kernel/core_pattern",
		"echo b > /proc/sysrq-trigger",
		"echo 9 > /proc/sys/user/max_user_namespaces",
	};
	start();
	kit_expect(&kit, "touch /workspace/f /tmp/f /dev/shm/f && echo x > /dev/null", "");
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct kit_result r = kit_shell(&kit, lines[i]);
		ck_assert_msg(r.status.end == RUNTIME_END_EXIT && r.status.code != 0,
			      "this worked: %s", lines[i]);
	}
	end();
}
TEST_END

TEST(the_network_is_loopback_alone)
{
	start();
	kit_expect(&kit,
		   "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; cat /proc/net/route | tail "
		   "-n +2",
		   "lo\n");
	kit_expect(
		&kit,
		"python3 -c 'import socket\n"
		"s = socket.create_server((\"127.0.0.1\", 0))\n"
		"c = socket.create_connection(s.getsockname()); s.accept()[0].sendall(b\"hello\")\n"
		"print(c.recv(5).decode(), socket.getaddrinfo(\"localhost\", 80)[0][4][0] in "
		"(\"127.0.0.1\", \"::1\"))'",
		"hello True\n");
	end();
}
TEST_END

TEST(without_inet_not_even_loopback_can_be_used)
{
	kit_make(&kit);
	kit.box.inet = false;
	struct err err = ERR_INIT;
	ck_ok(kit.runtime->start(&kit.box, &err), err);
	kit_expect(&kit,
		   "python3 -c 'import socket\n"
		   "for f in (socket.AF_INET, socket.AF_INET6):\n"
		   "  try: socket.socket(f); print(\"made\")\n"
		   "  except OSError as e: print(e.errno)\n"
		   "socket.socketpair()'",
		   "97\n97\n");
	end();
}
TEST_END

TEST(memory_file_systems_have_a_size)
{
	start();
	kit_expect(&kit,
		   "for d in /tmp /dev/shm; do head -c 8M /dev/zero >$d/big 2>/dev/null; stat -c "
		   "%s $d/big; done",
		   "4194304\n4194304\n");
	end();
}
TEST_END

TEST(two_sandboxes_do_not_see_each_other)
{
	struct kit other;
	start();
	kit_start(&other);
	const char *marker = kit_marker();
	char line[256];
	snprintf(line, sizeof(line), "sleep %s & touch /tmp/mine /workspace/mine", marker);
	kit_shell(&kit, line);
	snprintf(line, sizeof(line), "ls /tmp /workspace; ps -e -o args= | grep -c '^sleep'; true");
	kit_expect(&other, line, "/tmp:\n\n/workspace:\n0\n");
	ck_assert_int_eq(kit_count(marker), 1);
	kit_end(&other);
	ck_assert_int_eq(kit_count(marker), 1);
	end();
}
TEST_END

/* --- life -------------------------------------------------------------------------------- */

TEST(stop_frees_the_lock_and_may_be_repeated)
{
	struct err err = ERR_INIT;
	kit_make(&kit);
	ck_assert_int_eq(kit.runtime->alive(&kit.box, &err), 0);
	ck_ok(kit.runtime->stop(&kit.box, &err), err);
	ck_ok(kit.runtime->start(&kit.box, &err), err);
	ck_assert_int_eq(kit.runtime->alive(&kit.box, &err), 1);
	const char *marker = kit_marker();
	char line[64];
	snprintf(line, sizeof(line), "sleep %s &", marker);
	kit_shell(&kit, line);
	ck_ok(kit.runtime->stop(&kit.box, &err), err);
	ck_assert_int_eq(kit.runtime->alive(&kit.box, &err), 0);
	ck_assert_int_eq(kit_count(marker), 0);
	int fd = lock_open(kit.box.run_dir_fd, "alive", &err);
	ck_ok(lock_take(fd, LOCK_EXCLUSIVE, 0, &err), err);
	close(fd);
	ck_ok(kit.runtime->stop(&kit.box, &err), err);
	ck_ok(kit.runtime->start(&kit.box, &err), err);
	assert_usable();
	end();
}
TEST_END

TEST(a_second_start_finds_it_up_and_changes_nothing)
{
	start();
	struct err err = ERR_INIT;
	kit_expect(&kit, "touch /tmp/first", "");
	ck_ok(kit.runtime->start(&kit.box, &err), err);
	kit_expect(&kit, "ls /tmp", "first\n");
	end();
}
TEST_END

TEST(a_command_for_a_sandbox_that_is_down_did_not_run)
{
	start();
	struct err err = ERR_INIT;
	static const char *const program[] = {"true", NULL};
	ck_ok(kit.runtime->stop(&kit.box, &err), err);
	struct kit_result r = kit_run(&kit, program, "/workspace", NULL, KIT_TIMEOUT);
	ck_assert(!r.started);
	ck_assert_int_eq(r.err.code, ERR_LOST);
	end();
}
TEST_END

TEST(a_stop_in_the_middle_is_a_lost_end_and_not_an_exit)
{
	start();
	struct err err = ERR_INIT;
	struct runtime_exec exec;
	struct runtime_status status;
	exec_line("sleep 60", &exec);
	ck_ok(kit.runtime->stop(&kit.box, &err), err);
	struct pollfd ended = {.fd = exec.fd, .events = POLLIN};
	ck_assert_int_eq(poll(&ended, 1, 2000), 1);
	kit.runtime->finish(&exec, &status);
	ck_assert_int_eq(status.end, RUNTIME_END_LOST);
	ck_assert(!status.swept);
	end();
}
TEST_END

TEST(the_sandbox_outlives_its_starter)
{
	kit_make(&kit);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		_exit(kit.runtime->start(&kit.box, &err) ? 0 : 1);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	clock_sleep_ms(100);
	assert_usable();
	end();
}
TEST_END

TEST(a_starter_killed_at_any_moment_leaves_something_usable)
{
	kit_make(&kit);
	struct err err = ERR_INIT;
	for (int delay_us = 0; delay_us < 24000; delay_us += 800) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(kit.runtime->start(&kit.box, &err) ? 0 : 1);
		usleep((useconds_t)delay_us);
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		if (delay_us % 1600) { /* the next user starts it, or stops it */
			ck_ok(kit.runtime->start(&kit.box, &err), err);
			assert_usable();
		}
		ck_ok(kit.runtime->stop(&kit.box, &err), err);
		ck_assert_int_eq(kit.runtime->alive(&kit.box, &err), 0);
	}
	end();
}
TEST_END

TEST(a_start_that_fails_says_so_and_leaves_nothing_running)
{
	kit_make(&kit);
	struct err err = ERR_INIT;
	ck_assert_int_eq(rmdir(kit.workspace), 0);
	ck_assert(!kit.runtime->start(&kit.box, &err));
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(err.trace, "bwrap"));
	ck_assert_ptr_null(strstr(err.msg, kit.dir));
	ck_assert_int_eq(kit.runtime->alive(&kit.box, &err), 0);
	ck_assert_int_eq(mkdir(kit.workspace, 0700), 0);
	err = (struct err)ERR_INIT;
	ck_ok(kit.runtime->start(&kit.box, &err), err);
	assert_usable();
	end();
}
TEST_END

TEST(many_commands_at_once_each_get_their_own_answer)
{
	start();
	struct runtime_exec execs[40];
	char line[64];
	for (int i = 0; i < 40; i++) {
		snprintf(line, sizeof(line), "sleep 0.%d; exit %d", i % 5, i);
		exec_line(line, &execs[i]);
	}
	for (int i = 0; i < 40; i++) {
		struct runtime_status status;
		kit.runtime->finish(&execs[i], &status);
		ck_assert_int_eq(status.end, RUNTIME_END_EXIT);
		ck_assert_int_eq(status.code, i);
	}
	end();
}
TEST_END

TEST(drivers_are_found_by_name)
{
	AUTO_BUF names = BUF_INIT;
	runtime_names(&names);
	ck_assert_ptr_nonnull(strstr(buf_str(&names), "bwrap"));
	ck_assert_ptr_null(runtime_find("no-such-runtime"));
	struct runtime_box box = {.inet = false};
	AUTO_JSON *isolation = runtime_find("bwrap")->describe(&box);
	ck_assert_str_eq(json_get_str(isolation, "runtime"), "bwrap");
	ck_assert_str_eq(json_get_str(isolation, "network"), "none");
}
TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		exit_codes_and_signals_are_told_apart,
		the_environment_is_exactly_what_was_asked_for,
		a_command_that_cannot_start_says_what_to_do,
		too_many_arguments_are_refused_before_anything_runs,
		limits_are_in_force,
		signals_that_the_worker_blocks_or_ignores_reach_a_command,
		a_timeout_ends_every_descendant,
		a_command_that_obeys_term_ends_without_the_grace,
		closing_the_connection_ends_every_descendant,
		a_cancelled_command_still_reports_its_end,
		survivors_are_counted_and_stay,
		a_process_whose_first_thread_ended_is_ended_too,
		orphans_leave_no_zombies,
		a_command_that_kills_everything_is_told_so_and_the_next_one_runs,
		pid_1_cannot_be_killed_stopped_or_looked_into,
		a_fork_bomb_stays_within_its_limit_and_is_ended,
		at_the_process_limit_stop_still_works,
		when_pid_1_takes_no_more_commands_it_says_so_and_stop_still_works,
		half_a_request_and_garbage_do_no_harm,
		only_three_descriptors_are_visible,
		nothing_is_left_of_privileges,
		namespaces_and_mounts_are_refused,
		the_network_is_loopback_alone,
		without_inet_not_even_loopback_can_be_used,
		memory_file_systems_have_a_size,
		two_sandboxes_do_not_see_each_other,
		stop_frees_the_lock_and_may_be_repeated,
		a_second_start_finds_it_up_and_changes_nothing,
		a_command_for_a_sandbox_that_is_down_did_not_run,
		a_stop_in_the_middle_is_a_lost_end_and_not_an_exit,
		the_sandbox_outlives_its_starter,
		a_starter_killed_at_any_moment_leaves_something_usable,
		a_start_that_fails_says_so_and_leaves_nothing_running,
		many_commands_at_once_each_get_their_own_answer,
		drivers_are_found_by_name,
	};
	(void)argc;
	return kit_main(argv, "bwrap", tests, ARRAY_LEN(tests));
}
