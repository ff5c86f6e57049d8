/*
 * Task directories. All names in them are ours; the content of `spec` and `result` was written by
 * us as well, but a disk can damage it, so both are read with bounds and without trust in their
 * form.
 */
#include "store/task_dir.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/lock.h"

#define NEW_PREFIX  ".new-"
#define NAME_BUFFER (sizeof(NEW_PREFIX) + ID_LEN)
#define SPEC_FILE   "spec"
#define LOCK_FILE   "alive"
#define ORDER_FILE  "ctl"
#define RESULT_FILE "result"
#define SPEC_MAX    (1024 * 1024) /* EXEC_REQUEST_MAX, with every byte escaped as \u00XX */
#define RESULT_MAX  (64 * 1024)

static const char *new_name(const char *id, char out[static NAME_BUFFER])
{
	assert(id_is_valid(id));
	snprintf(out, NAME_BUFFER, NEW_PREFIX "%s", id);
	return out;
}

/* --- before it is visible ------------------------------------------------------------------ */

static bool make_file(int dirfd, const char *name, struct err *err)
{
	AUTO_FD fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd >= 0 || err_sys(err, "create %s", name);
}

static bool fill(const struct spool *spool, int dirfd, struct json_object *spec, struct err *err)
{
	size_t len;
	const char *text = json_text(spec, &len);
	if (len > SPEC_MAX)
		return err_set(err, ERR_INTERNAL, "the spec of a task has %zu bytes", len);
	if (mkfifoat(dirfd, ORDER_FILE, 0600) != 0)
		return err_sys(err, "create %s", ORDER_FILE);
	/* The last one syncs the directory. */
	return make_file(dirfd, LOCK_FILE, err) &&
	       fs_write_atomic(dirfd, SPEC_FILE, text, len, 0600, err) &&
	       fs_sync_dir(spool->tasks_fd, err);
}

static int open_dir(const struct spool *spool, const char *name)
{
	return openat(spool->tasks_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int task_dir_make(const struct spool *spool, const char *id, struct json_object *spec,
		  struct err *err)
{
	char name[NAME_BUFFER];
	if (mkdirat(spool->tasks_fd, new_name(id, name), 0700) != 0) {
		err_sys(err, "make the directory of a task");
		return -1;
	}
	AUTO_FD fd = open_dir(spool, name);
	if (fd < 0)
		err_sys(err, "open the directory of a task");
	else if (fill(spool, fd, spec, err))
		return TAKE_FD(fd);
	struct err leftover = ERR_INIT; /* the first one is the one to tell */
	if (!spool_retire_task(spool, name, &leftover))
		err_in(err, "not cleaned up");
	return -1;
}

bool task_dir_discard(const struct spool *spool, const char *id, struct err *err)
{
	char name[NAME_BUFFER];
	return spool_retire_task(spool, new_name(id, name), err) &&
	       spool_retire_task(spool, id, err);
}

int task_dir_open_new(const struct spool *spool, const char *id, struct err *err)
{
	char name[NAME_BUFFER];
	int fd = open_dir(spool, new_name(id, name));
	if (fd < 0)
		err_sys(err, "open the directory of a new task");
	return fd;
}

bool task_dir_publish(const struct spool *spool, const char *id, struct err *err)
{
	char name[NAME_BUFFER];
	if (renameat(spool->tasks_fd, new_name(id, name), spool->tasks_fd, id) != 0)
		return err_sys(err, "publish a task");
	return fs_sync_dir(spool->tasks_fd, err);
}

/* --- reading ------------------------------------------------------------------------------- */

int task_dir_open(const struct spool *spool, const char *id, struct err *err)
{
	assert(id_is_valid(id));
	int fd = open_dir(spool, id);
	if (fd < 0 && errno == ENOENT)
		err_set(err, ERR_NOT_FOUND, "the log of this task is not on the server");
	else if (fd < 0)
		err_sys(err, "open the directory of a task");
	return fd;
}

/* Appends a file. 1; 0 when there is none; -1 with err. */
static int read_file(int dirfd, const char *name, size_t max, struct buf *out, struct err *err)
{
	AUTO_FD fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0) {
		err_sys(err, "open %s of a task", name);
		return -1;
	}
	return fs_read_all(fd, max, out, err) ? 1 : -1;
}

struct json_object *task_dir_spec(int dirfd, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	int rc = read_file(dirfd, SPEC_FILE, SPEC_MAX, &text, err);
	if (rc < 0)
		return NULL;
	struct err parsing = ERR_INIT;
	struct json_object *spec = rc == 0 ? NULL : json_parse(buf_str(&text), text.len, &parsing);
	if (json_object_is_type(spec, json_type_object))
		return spec;
	json_object_put(spec);
	err_set(err, ERR_INTERNAL, "the spec of a task is missing or damaged");
	return NULL;
}

/* --- the result ---------------------------------------------------------------------------- */

static struct json_object *result_from(const struct task_row *row)
{
	struct json_object *result = json_object_new_object();
	json_add_str(result, "state", task_state_name(row->state));
	if (row->has_exit_code)
		json_add_int(result, "exit_code", row->exit_code);
	if (row->signal != 0)
		json_add_int(result, "signal", row->signal);
	json_add_str(result, "reason", row->reason);
	json_add_int(result, "cpu_ms", row->cpu_ms);
	json_add_int(result, "max_rss_kib", row->max_rss_kib);
	json_add_int(result, "survivors", row->survivors);
	json_add_int(result, "started_at", row->started_at);
	json_add_int(result, "finished_at", row->finished_at);
	return result;
}

/* Complete and on disk, then linked to its name, which fails when that is taken. */
static bool publish_result(int dirfd, const char *temp, const char *text, size_t len,
			   struct err *err)
{
	AUTO_FD fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "create the result of a task");
	if (!fs_write_all(fd, text, len, err))
		return false;
	if (fsync(fd) != 0)
		return err_sys(err, "sync the result of a task");
	return linkat(dirfd, temp, dirfd, RESULT_FILE, 0) == 0 || errno == EEXIST ||
	       err_sys(err, "publish the result of a task");
}

bool task_dir_write_result(int dirfd, const struct task_row *row, struct err *err)
{
	assert(row->state > TASK_RUNNING);
	char id[ID_LEN + 1], temp[NAME_BUFFER];
	AUTO_JSON *result = result_from(row);
	size_t len;
	const char *text = json_text(result, &len);
	id_make(id);
	bool ok = publish_result(dirfd, new_name(id, temp), text, len, err);
	unlinkat(dirfd, temp, 0);
	/* Also when somebody else's was first: what is told next must survive a power cut. */
	return ok && fs_sync_dir(dirfd, err);
}

/* A number that we wrote, if it is there. False when it cannot be one of ours. */
static bool take_number(struct json_object *result, const char *key, int64_t max, int64_t *number)
{
	if (!json_has(result, key))
		return true;
	int64_t value = json_get_int(result, key, -1);
	if (value < 0 || value > max)
		return false;
	*number = value;
	return true;
}

/* False when it is damaged; row is then filled in part. */
static bool take_outcome(struct json_object *result, struct task_row *row)
{
	int64_t exit_code = 0, signal = 0, survivors = 0;
	row->cpu_ms = row->max_rss_kib = 0;
	if (!task_state_parse(json_get_str(result, "state"), &row->state) ||
	    row->state == TASK_RUNNING || !take_number(result, "exit_code", INT_MAX, &exit_code) ||
	    !take_number(result, "signal", INT_MAX, &signal) ||
	    !take_number(result, "survivors", INT_MAX, &survivors) ||
	    !take_number(result, "cpu_ms", INT64_MAX, &row->cpu_ms) ||
	    !take_number(result, "max_rss_kib", INT64_MAX, &row->max_rss_kib) ||
	    !take_number(result, "started_at", INT64_MAX, &row->started_at) ||
	    !take_number(result, "finished_at", INT64_MAX, &row->finished_at))
		return false;
	row->has_exit_code = json_has(result, "exit_code");
	row->exit_code = (int)exit_code;
	row->signal = (int)signal;
	row->survivors = (int)survivors;
	/* Nobody is told of a success that the result does not prove. */
	return row->state != TASK_SUCCEEDED || (row->has_exit_code && row->exit_code == 0);
}

static void fill_outcome(struct json_object *result, struct task_row *row)
{
	const int64_t started_at = row->started_at;
	free(row->reason);
	row->reason = NULL;
	if (take_outcome(result, row)) {
		if (json_get_str(result, "reason") != NULL)
			row->reason = xstrdup(json_get_str(result, "reason"));
		return;
	}
	row->state = TASK_UNKNOWN;
	row->has_exit_code = false;
	row->exit_code = row->signal = row->survivors = 0;
	row->cpu_ms = row->max_rss_kib = 0;
	row->started_at = started_at;
	row->finished_at = clock_wall_ms(); /* at the latest; what is left of it is kept from now */
	row->reason = xstrdup("its result is damaged on the server's disk");
}

/* 1 when there is one, 0 when not, -1 with err. */
static int read_result(int dirfd, struct task_row *row, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	struct err parsing = ERR_INIT;
	int rc = read_file(dirfd, RESULT_FILE, RESULT_MAX, &text, err);
	if (rc != 1)
		return rc;
	AUTO_JSON *result = json_parse(buf_str(&text), text.len, &parsing);
	fill_outcome(result, row);
	return 1;
}

/* 1 held, 0 free (or it is not there any more), -1 with err. */
static int lock_state(int dirfd, struct err *err)
{
	AUTO_FD fd = openat(dirfd, LOCK_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	int held = fd < 0 ? -1 : lock_is_held(fd);
	if (held < 0)
		err_sys(err, "look at the lock of a task");
	return held;
}

enum task_verdict task_dir_verdict(int dirfd, struct task_row *row, struct err *err)
{
	int final = read_result(dirfd, row, err);
	if (final == 0) {
		int held = lock_state(dirfd, err);
		if (held != 0)
			return held > 0 ? TASK_VERDICT_RUNNING : TASK_VERDICT_NONE;
		final = read_result(dirfd, row, err);
	}
	if (final < 0)
		return TASK_VERDICT_NONE;
	return final > 0 ? TASK_VERDICT_FINAL : TASK_VERDICT_LOST;
}

int task_dir_take_lock(int dirfd, struct err *err)
{
	AUTO_FD fd = openat(dirfd, LOCK_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		err_sys(err, "open the lock of a task");
		return -1;
	}
	return lock_take(fd, LOCK_EXCLUSIVE, 0, err) ? TAKE_FD(fd) : -1;
}

/* --- orders -------------------------------------------------------------------------------- */

bool task_dir_order(int dirfd, char order, struct err *err)
{
	AUTO_FD fd = openat(dirfd, ORDER_FILE, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENXIO || errno == ENOENT))
		return err_set(err, ERR_CONFLICT, "nobody looks after this task any more");
	/* With a reading end of our own the supervisor's end cannot raise SIGPIPE here. */
	AUTO_FD both = openat(dirfd, ORDER_FILE, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || both < 0)
		return err_sys(err, "open the orders of a task");
	/* A pipe full of orders says all that this one could say. */
	return write(fd, &order, 1) == 1 || errno == EAGAIN || err_sys(err, "order a task");
}

int task_dir_open_orders(int dirfd, struct err *err)
{
	/* For writing as well: else the end of each writer would be an event without end. */
	int fd = openat(dirfd, ORDER_FILE, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		err_sys(err, "open the orders of a task");
	return fd;
}
