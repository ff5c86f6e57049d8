/*
 * What the host and PID 1 of a sandbox say to each other: one request per connection, then
 * replies of a fixed size. Shared by both sides and free of everything but the C library's own
 * headers, since PID 1 is built by another compiler. Encoding and decoding are pure functions
 * over bounded memory; integers are little-endian.
 *
 *	request   head (magic, body length), body; stdin, stdout and stderr come with the head
 *	          as SCM_RIGHTS
 *	reply 1   ACCEPTED: the request is complete and well-formed; nothing has run before this
 *	reply 2   STARTED, or FAILED with step and errno (then nothing follows)
 *	reply 3   EXITED, or SWEPT when the command's keeper was killed or stopped from inside
 *
 * Between STARTED and EXITED one byte from the host, or the end of the connection, asks for the
 * end of the command and all its descendants.
 */
#ifndef SPOOLBOX_RUN_WIRE_H
#define SPOOLBOX_RUN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Descriptors PID 1 inherits. */
#define WIRE_FD_LISTEN 3 /* bound; PID 1 itself listens, so that it is the socket's credential */
#define WIRE_FD_ALIVE  4 /* locked for as long as PID 1 lives */
#define WIRE_FD_READY  5 /* one byte once PID 1 listens */

#define WIRE_HEAD_SIZE  8
#define WIRE_BODY_MAX   (256 * 1024)
#define WIRE_STRING_MAX (128 * 1024 - 1) /* the kernel's MAX_ARG_STRLEN without the NUL */
#define WIRE_WORDS_MAX  2048             /* argv and environment together */
#define WIRE_FDS        3
#define WIRE_TIME_MAX   (366LL * 24 * 3600 * 1000)
#define WIRE_REPLY_SIZE 56

enum wire_limit {
	WIRE_LIMIT_PROCESSES,
	WIRE_LIMIT_OPEN_FILES,
	WIRE_LIMIT_FILE_BYTES,
	WIRE_LIMIT_DATA_BYTES,
	WIRE_LIMIT__MAX
};

struct wire_request {
	int64_t timeout_ms;              /* 0: none */
	int64_t grace_ms;                /* between TERM and KILL */
	int64_t limits[WIRE_LIMIT__MAX]; /* -1: as it is */
	const char *cwd;                 /* absolute */
	const char *const *argv;         /* both NULL-terminated */
	const char *const *env;
};

enum wire_fault {
	WIRE_OK = 0,
	WIRE_FAULT_BODY,   /* more than WIRE_BODY_MAX bytes in all */
	WIRE_FAULT_STRING, /* one string longer than WIRE_STRING_MAX */
	WIRE_FAULT_WORDS,  /* more than WIRE_WORDS_MAX strings */
	WIRE_FAULT_FORM,   /* malformed, or a value out of range */
};

/* Writes head and body; cap is WIRE_HEAD_SIZE + WIRE_BODY_MAX at most of use. *len is set on
 * WIRE_OK only. */
enum wire_fault wire_put_request(const struct wire_request *request, unsigned char *out, size_t cap,
				 size_t *len);

/* The body's length from a head, or 0 when it is none of ours or out of bounds. */
size_t wire_body_length(const unsigned char head[static WIRE_HEAD_SIZE]);

/* Reads a body. The strings stay where they are in body; words holds the two vectors. */
enum wire_fault wire_get_request(const unsigned char *body, size_t len,
				 struct wire_request *request,
				 const char *words[static WIRE_WORDS_MAX + 2]);

enum wire_kind {
	WIRE_ACCEPTED = 1,
	WIRE_STARTED,
	WIRE_FAILED,
	WIRE_EXITED,
	WIRE_SWEPT,
	WIRE_KIND__MAX
};

/* Where a start failed. */
enum wire_step {
	WIRE_STEP_NONE = 0,
	WIRE_STEP_KEEPER,  /* forking the keeper: only this one comes before ACCEPTED */
	WIRE_STEP_REQUEST, /* reading the request: likewise */
	WIRE_STEP_FORK,    /* forking the command */
	WIRE_STEP_SETUP,   /* descriptors, session, limits */
	WIRE_STEP_CWD,
	WIRE_STEP_EXEC,
	WIRE_STEP_WAIT, /* it did not get through exec in time */
	WIRE_STEP__MAX
};

enum wire_reason {
	WIRE_REASON_NONE = 0,
	WIRE_REASON_TIMEOUT,
	WIRE_REASON_CANCEL,
	WIRE_REASON__MAX
};

struct wire_reply {
	enum wire_kind kind;
	enum wire_step step;     /* FAILED */
	int error;               /* FAILED: errno */
	enum wire_reason reason; /* EXITED, as all that follows */
	int code;
	int signal; /* 0: it ended by exit */
	int survivors;
	int64_t user_us, system_us, max_rss_kib;
};

void wire_put_reply(const struct wire_reply *reply, unsigned char out[static WIRE_REPLY_SIZE]);
bool wire_get_reply(const unsigned char in[static WIRE_REPLY_SIZE], struct wire_reply *reply);

#endif
