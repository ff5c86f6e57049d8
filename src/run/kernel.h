/*
 * Python code in a sandbox, seen from the host. The other side is src/python; doc/python.md says
 * which processes there are and how each of them ends.
 *
 * A sandbox has at most one kernel: it listens on a socket that the host made
 * (run/<id>/python.sock), so that nothing inside can reach it, and forks a watcher for each
 * connection. A watcher forks the runner, which runs the code, and is all that talks to the host. A
 * session is a watcher that stays, with a listening socket of its own (run/<id>/py-<session>.sock).
 *
 * The kernel is started as
 *
 *	python3 -I /.python/kernel.py --idle-ms 300000 [--preload]
 *
 * with its socket, which listens already, as standard input. (-I: nothing that lies in the
 * workspace or stands in the environment becomes a part of it; what code may expect of
 * PYTHONPATH, the user's site directory and sys.path[0] is set up by the runner.) The process
 * that was started ends with 0 as soon as connections are taken, and its child goes on without
 * standard output and error; when that cannot be, it ends with another code, and the last line
 * of its standard error says why.
 *
 * Sockets are SOCK_SEQPACKET. The host sends one request, a packet of at most KERNEL_PACKET_MAX
 * bytes: JSON text, and with it (SCM_RIGHTS, in this order) the code in a sealed memory file,
 * the write ends of two pipes for standard output and error, and for a new session its socket,
 * which listens already. A further packet ("c"), or the end of the connection, asks for the end
 * of the run.
 *
 *	{"cwd": "/workspace", "timeout_ms": 10000, "grace_ms": 2000, "image_bytes": 786432,
 *	 "save_dir": "/workspace/.python/1f2e3d4c", "guard": false, "inputs": ["a.csv"],
 *	 "session": false, "idle_ms": 300000}
 *
 * "session" is true for a new one only. On a session's socket there is one more request, without
 * descriptors and without an answer: {"end": true} ends the session and all its processes.
 *
 * The watcher answers in frames. A frame is one or more packets of at most KERNEL_PACKET_MAX bytes:
 * a letter of enum kernel_frame, '1' when the frame goes on in the next packet and '0' when not,
 * then (a piece of) the payload. All pieces of a frame bear its letter, and no other frame comes
 * between them. JSON is strict UTF-8; a lone surrogate, escaped or not, makes the frame dropped.
 * KERNEL_FRAME_STARTED is sent before the code can have done anything, and when it cannot be sent
 * nothing is run; so a connection that ends without it means that the code may be run again.
 *
 * What comes is as hostile as everything from a sandbox, so all of it is counted and checked here:
 * members of the wrong type or beyond the limits in kernel_frame.c make the frame dropped, members
 * that are not known are ignored, and a text that is too long is cut.
 */
#ifndef SPOOLBOX_RUN_KERNEL_H
#define SPOOLBOX_RUN_KERNEL_H

#include <time.h>

#include "base/json.h"
#include "base/util.h"
#include "run/capture.h"
#include "run/runtime.h"

#define KERNEL_PACKET_MAX   65536
#define KERNEL_FRAME_MAX    (8 * 1024 * 1024)  /* payload of one frame */
#define KERNEL_TOTAL_MAX    (16 * 1024 * 1024) /* payloads of one run */
#define KERNEL_IMAGES_MAX   64
#define KERNEL_DISPLAYS_MAX 64
#define KERNEL_FILES_MAX    64

/* Its socket in run/<id>; the lock beside it is held for as long as a start takes. */
#define KERNEL_SOCKET "python.sock"
#define KERNEL_LOCK   "python.lock"

/* The sandbox's own variables come to the kernel under names that begin so, beside those that every
 * command gets: LD_PRELOAD, BASH_ENV and the like have no meaning to it then. The runner gives them
 * their names back. */
#define KERNEL_ENV_PREFIX "SPOOLBOX_ENV_"

/* Where the interpreter's side lies in every sandbox, read-only. */
#define KERNEL_DIR_INSIDE "/.python"
/* The same on the host, for proc_find: a directory of files, no program of ours has that name. */
#define KERNEL_DIR_NAME "python/."
/* And matplotlib's list of fonts, which the kernel copies (box/python_fonts.h). */
#define KERNEL_FONTS_INSIDE "/.python-fonts"

enum kernel_frame {
	KERNEL_FRAME_STARTED = 'S', /* no payload: the code was taken over and runs now */
	KERNEL_FRAME_VALUE = 'V',   /* {"text", "type", "truncated"}: of the last expression */
	KERNEL_FRAME_DISPLAY = 'D', /* {"mime", "text"}: shown by display() and the like */
	KERNEL_FRAME_IMAGE = 'I',   /* {"mime", "width", "height", "scaled", "file"}, a newline,
				     * the bytes; width and height are those of the bytes; file
				     * may be missing or null */
	KERNEL_FRAME_FILE = 'F',    /* {"path", "about"}: a file that was made for the caller */
	KERNEL_FRAME_ERROR = 'E',   /* {"type", "message", "traceback", "hint"}: an exception that
				     * ended the code; hint may be missing or null */
	KERNEL_FRAME_NOTE = 'N',    /* {"text"}: a sentence for whoever reads the result */
	KERNEL_FRAME_END = 'X',     /* {"end", "code", "signal", "timed_out", "state", "cpu_ms",
				     * "max_rss_kib", "runs"}: the last one; from the watcher alone.
				     * end: "done", "exception", "exit", "signal" or "lost" as in
				     * enum kernel_end; state: "none", "kept" or "lost"; the
				     * numbers may be missing where they mean nothing */
};

/* What became of a session's variables. */
enum kernel_state {
	KERNEL_STATE_NONE = 0, /* there is no session */
	KERNEL_STATE_KEPT,
	KERNEL_STATE_LOST,
};

enum kernel_end {
	KERNEL_END_NONE = 0,
	KERNEL_END_DONE,      /* the code came to its end; code is 0 */
	KERNEL_END_EXCEPTION, /* error is set; code is 1 */
	KERNEL_END_EXIT,      /* sys.exit or os._exit: code is set */
	KERNEL_END_SIGNAL,    /* signal is set */
	KERNEL_END_LOST,      /* the watcher or the sandbox went away: the end was not seen */
};

struct kernel_image {
	char mime[32]; /* "image/png" or "image/jpeg"; the bytes begin as such do */
	struct buf data;
	int width, height;
	bool scaled; /* the full size is in file, when there is one */
	char *file;  /* as path of kernel_file, or NULL */
};
struct kernel_display {
	char *mime;
	struct buf text; /* UTF-8 */
};
struct kernel_file {
	char *path;  /* as the sandbox sees it; not checked any further than to be UTF-8 */
	char *about; /* what it is, or NULL */
};

struct kernel_request {
	const char *code;
	size_t code_len;
	const char *cwd;           /* absolute, inside */
	const char *save_dir;      /* absolute, inside: for what is too large to be shown. Made when
				    * it is needed */
	const char *const *inputs; /* NULL-terminated names that are no output; or NULL */
	int64_t timeout_ms;
	int64_t image_bytes; /* of all images together, before base64 */
	int64_t idle_ms;     /* after which a session ends by itself */
	bool guard;
};

struct kernel_run {
	struct capture out, err;
	struct kernel_image images[KERNEL_IMAGES_MAX];
	size_t image_count;
	struct kernel_display displays[KERNEL_DISPLAYS_MAX];
	size_t display_count;
	struct kernel_file files[KERNEL_FILES_MAX];
	size_t file_count;
	struct buf notes;          /* sentences, joined by spaces */
	struct json_object *value; /* as of the frame, members checked; or NULL */
	struct json_object *error; /* likewise */
	bool started;              /* the code was taken over */
	bool not_taken;            /* it was not, for as long as anybody waits for that */
	bool left_out;             /* there was more than the limits above allow */
	enum kernel_end end;
	int code, signal;
	bool timed_out;          /* its time was up; it was interrupted or killed then */
	bool cancelled;          /* tick said so, or the time was up on this side */
	enum kernel_state state; /* NONE as well when the end was not seen */
	int64_t runs;            /* of the session, this one included */
	int64_t cpu_ms, max_rss_kib, duration_ms;
};

void kernel_run_init(struct kernel_run *run, size_t stdout_max, size_t stderr_max);
void kernel_run_finish(struct kernel_run *run);
#define AUTO_KERNEL_RUN __attribute__((cleanup(kernel_run_finish))) struct kernel_run

/* Starts the kernel of a running sandbox unless one answers; many may try at once, one starts.
 * command is what starts it (exec.h makes it from kernel_command); its descriptors are filled in
 * here. ERR_LOST: the sandbox is down. ERR_UNAVAILABLE: there is no Python that is new enough, or
 * it did not come up; the message says what it said. ERR_BUSY: another start takes too long. */
bool kernel_start(const struct runtime *runtime, const struct runtime_box *box,
		  struct runtime_command *command, struct err *err) MUST_USE;
/* The shell command for it, appended. preload: import what most plots and tables need, at once;
 * else that is done when code has asked for it. */
void kernel_command(struct buf *out, int64_t idle_ms, bool preload);

/* A connection to the kernel; -1 with err, ERR_LOST when none answers. */
int kernel_connect(const struct runtime_box *box, struct err *err);
/* A connection to a session; -1 with err, ERR_LOST when it is gone. */
int kernel_connect_session(const struct runtime_box *box, const char *session_id, struct err *err);

/* Runs code over a fresh connection to the end, which comes at the latest some seconds after
 * timeout_ms. new_session_id: NULL, or make the session of that id, over a connection to the
 * kernel; the caller holds a lock for that id. A connection to a session is for that one anyhow.
 * False only when nothing was run: ERR_LOST when the other side was gone by then, ERR_BUSY when it
 * does not take the code (see run->not_taken). However the code ends, that is data. tick (may be
 * NULL) is asked about twice a second; when it returns false the end is asked for, and waited for
 * some seconds at most.
 */
typedef bool kernel_tick(void *ctx);
bool kernel_run(int fd, const struct runtime_box *box, const struct kernel_request *request,
		const char *new_session_id, kernel_tick *tick, void *ctx, struct kernel_run *run,
		struct err *err) MUST_USE;

/* For a kernel that does not take code, since something inside stopped it, say: its socket goes, so
 * that the next kernel_start starts another. Nothing happens when there is one already, as the
 * socket is newer than seen_at (wall time), or when somebody starts one just now. */
void kernel_discard(const struct runtime_box *box, const struct timespec *seen_at);

/* Ends a session: its processes, and its socket file. Success when it was gone. Does not wait. */
void kernel_end_session(const struct runtime_box *box, const char *session_id);

#endif
