/*
 * One run of Python code: what is checked, what the kernel is asked for, and starting over when
 * sandbox or kernel went down before the code began.
 */
#include "box/python_part.h"

#include <sodium.h>
#include <string.h>

#include "base/text.h"

#define SAVE_DIR       PYTHON_WORKSPACE "/.python/"
#define SAVE_DIR_BYTES 4 /* random ones, as hex digits: new for each run */

/* --- checks -------------------------------------------------------------------------------- */

static bool check_code(const struct python_options *options, struct err *err)
{
	const char *code = options->code;
	size_t len = options->code_len;
	if (code == NULL || len == 0) {
		err_set(err, ERR_INVALID, "code is empty");
		return err_hint(err,
				"Give the Python code to run, e.g. {\"code\": \"print(2 + 2)\"}.");
	}
	if (len > PYTHON_CODE_MAX) {
		err_set(err, ERR_TOO_LARGE, "code has %zu bytes; the limit is %d", len,
			PYTHON_CODE_MAX);
		return err_hint(err,
				"Put data into files (write_text, upload_file) and read them in "
				"the code. Nothing was run.");
	}
	const char *nul = memchr(code, '\0', len);
	if (nul != NULL) {
		err_set(err, ERR_INVALID, "code holds a NUL character at byte %zu",
			(size_t)(nul - code));
		return err_hint(err, "Write it as \\0 in a string of the code. Nothing was run.");
	}
	if (text_is_utf8(code, len))
		return true;
	err_set(err, ERR_INVALID, "code is not UTF-8 text; nothing was run");
	return err_hint(err, "Write other characters as escapes, e.g. \\xff in bytes.");
}

bool python_check(const struct python_options *options, struct err *err)
{
	int64_t timeout_ms = options->timeout_ms;
	if (!check_code(options, err))
		return false;
	if (timeout_ms >= 0 && timeout_ms <= PYTHON_TIMEOUT_MAX_MS)
		return true;
	err_set(err, ERR_INVALID, "timeout_ms is %lld; code may take from 1 to %d ms",
		(long long)timeout_ms, PYTHON_TIMEOUT_MAX_MS);
	return err_hint(err, "Longer work is a task: write the code to a file with write_text and "
			     "start it with run_background, e.g. python3 FILE. Nothing was run.");
}

/* --- the kernel's command ------------------------------------------------------------------ */

void python_kernel_finish(struct python_kernel *kernel)
{
	exec_command_finish(&kernel->command);
	buf_finish(&kernel->text);
}

/* What commands of the sandbox have in their environment, handed to the code but not to its kernel.
 * The command is short, so there is room. */
static void add_for_code(struct exec_command *command, const struct exec_environment *given)
{
	struct exec_environment *env = &command->env;
	env->items = xrealloc(env->items, (env->count + given->count + 1) * sizeof(*env->items));
	for (size_t i = 0; i < given->count; i++)
		env->items[env->count++] = xasprintf(KERNEL_ENV_PREFIX "%s", given->items[i]);
	env->items[env->count] = NULL;
	command->run.env = (const char *const *)env->items;
}

bool python_kernel_make(struct python_kernel *kernel, const struct app *app,
			const struct sandbox_row *row, int64_t idle_ms, bool preload,
			struct err *err)
{
	kernel_command(&kernel->text, idle_ms, preload);
	kernel->options = (struct exec_options){.command = buf_str(&kernel->text)};
	struct sandbox_row plain = *row;
	plain.env = NULL;
	AUTO_EXEC_COMMAND usual = {.cwd = NULL};
	if (!exec_command_make(&usual, app, row, &kernel->options, err) ||
	    !exec_command_make(&kernel->command, app, &plain, &kernel->options, err))
		return false;
	add_for_code(&kernel->command, &usual.env);
	return true;
}

/* --- one run ------------------------------------------------------------------------------- */

void python_result_finish(struct python_result *result)
{
	kernel_run_finish(&result->run);
	python_changes_finish(&result->changes);
	memset(result, 0, sizeof(*result));
}

static void init_run(struct python_work *work)
{
	const struct conf *conf = work->app->conf;
	kernel_run_init(&work->result->run, (size_t)conf->stdout_max, (size_t)conf->stderr_max);
}

bool python_work_check(struct python_work *work, struct err *err)
{
	memset(work->result, 0, sizeof(*work->result));
	init_run(work);
	return python_check(work->options, err);
}

/* One attempt over a connection. */
static bool run_once(struct python_work *work, int fd, const char *new_session_id, struct err *err)
{
	const struct conf *conf = work->app->conf;
	unsigned char random[SAVE_DIR_BYTES];
	char hex[2 * SAVE_DIR_BYTES + 1];
	randombytes_buf(random, sizeof(random));
	sodium_bin2hex(hex, sizeof(hex), random, sizeof(random));
	AUTO_FREE char *save_dir = xasprintf(SAVE_DIR "%s", hex);
	int64_t timeout_ms = work->options->timeout_ms;
	struct kernel_request request = {
		.code = work->options->code,
		.code_len = work->options->code_len,
		.cwd = PYTHON_WORKSPACE,
		.save_dir = save_dir,
		.inputs = work->staged == NULL ? NULL : (const char *const *)work->staged->names,
		.timeout_ms = timeout_ms > 0 ? timeout_ms : PYTHON_TIMEOUT_MS,
		.image_bytes = conf->python_images / 4 * 3, /* base64 has 4 for 3 */
		.idle_ms = conf->python_idle * 1000,
		.guard = conf->python_guard,
	};
	/* Most file systems stamp changes with the time of the newest tick, which is this clock. */
	clock_gettime(CLOCK_REALTIME_COARSE, &work->began);
	return kernel_run(fd, &work->use->box, &request, new_session_id, work->tick, work->ctx,
			  &work->result->run, err);
}

bool python_work_over(struct python_work *work, int fd, struct err *err)
{
	return run_once(work, fd, NULL, err);
}

struct fresh {
	struct python_work *work;
	struct python_kernel *kernel;
	const char *new_session_id;
};

/* What failed before may have left traces in the run. */
static bool begin_fresh(void *ctx, const struct runtime_box *box, struct err *err)
{
	const struct fresh *fresh = ctx;
	struct python_work *work = fresh->work;
	kernel_run_finish(&work->result->run);
	init_run(work);
	if (!kernel_start(work->app->runtime, box, &fresh->kernel->command.run, err))
		return false;
	AUTO_FD fd = kernel_connect(box, err);
	if (fd < 0)
		return false;
	if (run_once(work, fd, fresh->new_session_id, err))
		return true;
	if (!work->result->run.not_taken)
		return false;
	kernel_discard(box, &work->began);
	return err_hint(err, "Something in the sandbox may have stopped it. Send the code again: "
			     "Python is started anew for it.");
}

/* The sandbox may well be up: a kernel that cannot fork lets go of each connection. Always false.
 */
static bool explain_lost(const struct python_work *work, struct err *err)
{
	err_set(err, ERR_LOST,
		"Python in sandbox %s went away each time before the code could begin; it was not "
		"run",
		work->row->name);
	return err_hint(err,
			"Look with exec whether too much runs in the sandbox (ps) and end what "
			"is not needed. If it stays so, destroy_sandbox (the files can be "
			"kept) and create it anew.");
}

bool python_work_fresh(struct python_work *work, const char *new_session_id, struct err *err)
{
	AUTO_PYTHON_KERNEL kernel = PYTHON_KERNEL_INIT;
	struct fresh fresh = {work, &kernel, new_session_id};
	if (!python_kernel_make(&kernel, work->app, work->row, work->app->conf->python_idle * 1000,
				false, err))
		return false;
	return exec_start(work->app, work->row, work->use, begin_fresh, &fresh, err) ||
	       (err->code == ERR_LOST && explain_lost(work, err));
}

void python_work_end(struct python_work *work)
{
	work->app->python_used = true;
	sandbox_touch(work->app, work->row);
	python_find_changes(work);
}

bool python_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		const struct python_options *options, const struct python_stage *staged,
		kernel_tick *tick, void *ctx, struct python_result *result, struct err *err)
{
	struct python_work work = {app, row, use, options, staged, tick, ctx, result, {0, 0}};
	if (!python_work_check(&work, err) || !python_work_fresh(&work, NULL, err))
		return false;
	python_work_end(&work);
	return true;
}
