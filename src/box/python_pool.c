/*
 * Reserves are made by whoever answered a call for one, after the answer: one process at a time,
 * by the lock file python.lock, which guards nothing but the work. A process that dies in between
 * leaves a reserve that is not ready; it is used all the same, and is merely slower.
 */
#include "box/python_pool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "box/python_fonts.h"
#include "box/python_part.h"
#include "box/sandbox_end.h"
#include "store/row_reserve.h"

#define LOCK_FILE     "python.lock"
#define TAKE_ATTEMPTS 32 /* each fails only because another took the same one */
#define RESERVE_TTL_S (30 * 60)
/* At a time: a call takes one, so there will be as many as are wanted, and no worker is away from
 * its clients for long. */
#define FILL_MAX 2
/* An interpreter with numpy, pandas and matplotlib takes some 90 MiB; twice as much stays free. */
#define MEMORY_MIN_KIB (256 * 1024)

/* --- taking -------------------------------------------------------------------------------- */

/* 1 taken, 0 there is none, -1 with err. */
static int take_reserve(struct app *app, const char *principal, int64_t ttl_ms,
			struct sandbox_row *row, struct err *err)
{
	for (int i = 0; i < TAKE_ATTEMPTS; i++) {
		AUTO_SANDBOX_ROW found = {0};
		int64_t now = clock_wall_ms();
		int rc = row_reserve_oldest(app->db, principal, now, &found, err);
		if (rc != 1)
			return rc;
		if (app->session_id != NULL) {
			snprintf(found.session_id, sizeof(found.session_id), "%s", app->session_id);
			found.ends_with_session = true;
		}
		rc = row_reserve_take(app->db, &found, ttl_ms, now, err);
		if (rc < 0)
			return -1;
		if (rc == 1) {
			*row = found;
			memset(&found, 0, sizeof(found));
			return 1;
		}
	}
	return 0;
}

bool python_pool_take(struct app *app, const char *principal, int64_t ttl_ms,
		      struct sandbox_row *row, struct err *err)
{
	bool created;
	struct sandbox_options options = {.ttl_ms = ttl_ms, .gives_way = true};
	app->python_used = true;
	app->python_principal = principal;
	int rc = take_reserve(app, principal, ttl_ms, row, err);
	return rc == 1 || (rc == 0 && sandbox_create(app, principal, &options, row, &created, err));
}

/* --- giving back --------------------------------------------------------------------------- */

/* Whoever is at work in it by now, to fetch a file, say, leaves it to the end of its lifetime. */
static bool stop_released(struct app *app, const struct sandbox_row *row, struct err *err)
{
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	switch (sandbox_hold(app, row, &hold, err)) {
	case SANDBOX_HELD:
		return sandbox_stop(app, &hold, err) >= 0;
	case SANDBOX_IN_USE:
	case SANDBOX_NOT_LIVE:
		return true;
	case SANDBOX_HELD_NONE:
		break;
	}
	return false;
}

static void finish_released(struct app *app)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	struct app_released released = app->python_released;
	app->python_released.id[0] = '\0';
	if (released.id[0] == '\0')
		return;
	int rc = row_sandbox_any(app->db, released.id, &row, &err);
	bool ok = rc >= 0;
	if (rc == 1 && row.state == SANDBOX_LIVE && released.keep_files)
		ok = stop_released(app, &row, &err);
	else if (rc == 1 && row.state == SANDBOX_GONE)
		ok = sandbox_remove(app, &row, true, NULL, &err);
	if (!ok)
		log_err(LOG_WARN, "python_release", &err);
}

void python_pool_release(struct app *app, const struct sandbox_row *row, bool keep_files)
{
	struct err err = ERR_INIT;
	finish_released(app); /* of an earlier call of the same message */
	if (!keep_files && row_sandbox_move(app->db, row->id, SANDBOX_LIVE, SANDBOX_GONE,
					    clock_wall_ms(), &err) < 0)
		log_err(LOG_WARN, "python_release", &err);
	memcpy(app->python_released.id, row->id, sizeof(app->python_released.id));
	app->python_released.keep_files = keep_files;
	app->python_used = true;
}

/* --- making reserves ----------------------------------------------------------------------- */

static bool has_memory(void)
{
	static const char name[] = "MemAvailable:";
	char text[2048];
	AUTO_FD fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *line = strstr(text, name);
	return line != NULL && strtoll(line + strlen(name), NULL, 10) >= MEMORY_MIN_KIB;
}

struct ready {
	const struct runtime *runtime;
	struct python_kernel kernel;
};

static bool begin_ready(void *ctx, const struct runtime_box *box, struct err *err)
{
	struct ready *ready = ctx;
	return kernel_start(ready->runtime, box, &ready->kernel.command.run, err);
}

static bool make_ready(struct app *app, const struct sandbox_row *row, struct err *err)
{
	struct ready ready = {app->runtime, PYTHON_KERNEL_INIT};
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	bool ok = sandbox_enter(app, row, &use, err) &&
		  python_kernel_make(&ready.kernel, app, row, row->ttl_ms, true, err) &&
		  exec_start(app, row, &use, begin_ready, &ready, err);
	python_kernel_finish(&ready.kernel);
	return ok;
}

/* False when there is no point in another try now. */
static bool make_reserve(struct app *app)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	bool created;
	int64_t ttl_s =
		app->conf->sandbox_ttl < RESERVE_TTL_S ? app->conf->sandbox_ttl : RESERVE_TTL_S;
	struct sandbox_options options = {.is_reserve = true, .ttl_ms = ttl_s * 1000};
	int64_t began_ms = clock_mono_ms();
	if (!sandbox_create(app, app->python_principal, &options, &row, &created, &err)) {
		log_err(err.code == ERR_QUOTA ? LOG_DEBUG : LOG_WARN, "reserve", &err);
		return false;
	}
	/* Somebody may have taken it, and even given it back, before it was ready. */
	if (!make_ready(app, &row, &err)) {
		log_err(err.code == ERR_DESTROYED ? LOG_DEBUG : LOG_WARN, "reserve", &err);
		return err.code == ERR_DESTROYED;
	}
	log_event(LOG_INFO, "reserve_made", "id=%s ms=%" PRId64, row.id,
		  clock_mono_ms() - began_ms);
	return true;
}

/* How many are missing; 0 when nobody knows. */
static int64_t count_missing(struct app *app)
{
	struct err err = ERR_INIT;
	int64_t count = row_reserve_count(app->db, &err);
	if (count < 0)
		log_err(LOG_WARN, "reserve", &err);
	return count < 0 ? 0 : app->conf->python_warm - count;
}

/* As far as memory and places allow, unless another process is at it. */
static void fill(struct app *app)
{
	struct err err = ERR_INIT;
	AUTO_FD lock = lock_open(app->spool.root_fd, LOCK_FILE, &err);
	if (lock < 0 || !lock_take(lock, LOCK_EXCLUSIVE, 0, &err)) {
		if (err.code != ERR_BUSY)
			log_err(LOG_WARN, "reserve", &err);
		return;
	}
	for (int i = 0; i < FILL_MAX && count_missing(app) > 0; i++)
		if (!has_memory() || !make_reserve(app))
			return;
}

void python_pool_settle(struct app *app)
{
	if (!app->python_used)
		return;
	app->python_used = false;
	finish_released(app);
	python_fonts_refresh(app);
	if (app->python_principal != NULL && count_missing(app) > 0)
		fill(app);
}
