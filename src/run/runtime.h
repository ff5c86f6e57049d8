/*
 * The runtime driver. Nothing above this floor knows how a sandbox is held: no PID, lock or
 * socket leaves a driver, so a holder on another host (a batch system's allocation, a microVM)
 * fits behind the same five verbs.
 *
 * run/<id>/ of a local driver holds
 *   use        lock: shared by every user of the sandbox for as long as it works on it
 *   start      lock: exclusive while somebody starts or stops the sandbox
 *   alive      lock: held by PID 1; free means the sandbox is down
 *   init.sock  where PID 1 serves exec requests
 * and what kernel.h puts there.
 */
#ifndef SPOOLBOX_RUN_RUNTIME_H
#define SPOOLBOX_RUN_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/util.h"

/* Between TERM and KILL when a command is cancelled or out of time. */
#define RUNTIME_GRACE_MS 2000

/* What a driver needs to know of a sandbox. All borrowed. */
struct runtime_box {
	int run_dir_fd;             /* run/<id> */
	const char *workspace_path; /* absolute, on the host; becomes /workspace */
	const char *fonts_path;     /* likewise, read-only: KERNEL_FONTS_INSIDE; NULL: none */
	bool inet;         /* AF_INET and AF_INET6 sockets (loopback only); else AF_UNIX only */
	int64_t tmp_bytes; /* size of /tmp and of /dev/shm */
};

/* One rlimit; -1: leave it. */
struct runtime_limits {
	int64_t processes;  /* RLIMIT_NPROC, counted in the sandbox's own user namespace */
	int64_t open_files; /* RLIMIT_NOFILE */
	int64_t file_bytes; /* RLIMIT_FSIZE */
	int64_t data_bytes; /* RLIMIT_DATA, per process: without a cgroup nothing bounds the sum */
};

struct runtime_command {
	const char *const *argv; /* argv[0] is looked up in PATH of env when it has no slash */
	const char *const *env;  /* "NAME=value", the whole environment */
	const char *cwd;         /* absolute, inside the sandbox */
	int stdin_fd, stdout_fd, stderr_fd;
	int64_t timeout_ms; /* enforced inside; 0: none */
	struct runtime_limits limits;
};

/* How a command ended. */
enum runtime_end {
	RUNTIME_END_NONE = 0,
	RUNTIME_END_EXIT,      /* code is set */
	RUNTIME_END_SIGNAL,    /* signal is set */
	RUNTIME_END_TIMEOUT,   /* it and all its descendants were ended */
	RUNTIME_END_CANCELLED, /* likewise, on request */
	RUNTIME_END_LOST, /* the sandbox or the command's keeper went away: the end was not seen */
};

struct runtime_status {
	enum runtime_end end;
	int code;   /* exit code */
	int signal; /* signal number, also set (KILL or TERM) after TIMEOUT and CANCELLED */
	int64_t user_us, system_us;
	int64_t max_rss_kib;
	int survivors; /* descendants that were left running on purpose */
	bool swept;    /* with LOST: something in the sandbox killed or stopped the keeper of a
			* command, and all its processes were ended; the sandbox itself is up */
};

/* A command that was started. */
struct runtime_exec {
	int fd; /* becomes readable when the command ends; closing it cancels the command */
};

struct runtime {
	const char *name;

	/* Whether this host can run it at all. False with ERR_UNAVAILABLE and the fix as hint. */
	bool (*probe)(struct err *err);

	/* Starts the holder and returns when it answers; success when it is up already. The caller
	 * holds the start lock. */
	bool (*start)(const struct runtime_box *box, struct err *err);

	/* Ends the holder and everything in it; success when it was down already. Needs no lock and
	 * waits until it is down. */
	bool (*stop)(const struct runtime_box *box, struct err *err);

	/* 1 up, 0 down, -1 with err. */
	int (*alive)(const struct runtime_box *box, struct err *err);

	/* Starts a command; returns when it was started or could not be. ERR_LOST: the sandbox is
	 * down or went down (start it and try again: the command did not run). ERR_INVALID: cwd or
	 * argv[0] does not exist. ERR_TOO_LARGE: argv and env. ERR_QUOTA: process limit reached.
	 * When the sandbox goes down at a moment where the command may have run, this succeeds and
	 * finish tells END_LOST. */
	bool (*exec)(const struct runtime_box *box, const struct runtime_command *command,
		     struct runtime_exec *exec, struct err *err);

	/* Asks for the end of a command and all its descendants (TERM, then KILL after a grace);
	 * the status still follows. Safe to call more than once. */
	void (*cancel)(struct runtime_exec *exec);

	/* Reads the status once exec->fd is readable; blocks until then otherwise. END_LOST when
	 * the connection ended without one. Closes exec->fd. */
	void (*finish)(struct runtime_exec *exec, struct runtime_status *status);

	/* What isolates a sandbox, as a new object for results and doctor. */
	struct json_object *(*describe)(const struct runtime_box *box);
};

/* The driver with that name, or NULL. The array of all of them is in drivers.c. */
const struct runtime *runtime_find(const char *name);
/* Names of all drivers, separated by ", ". */
void runtime_names(struct buf *out);

#endif
