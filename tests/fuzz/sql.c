/*
 * Strings in rows: what goes in comes out, and no text is more than a text for SQL.
 *
 * Input: the lines that the rows are made of; see LLVMFuzzerTestOneInput.
 */
#include "fuzz.h"

#include "store/row_link.h"
#include "store/row_sandbox.h"
#include "store/row_task.h"

#define SANDBOX_ID "0123456789abcdef0123456789abcdef"
#define OTHER_ID   "fedcba9876543210fedcba9876543210"

static struct db *db;

/* NULL where a row may have it: for an empty line. */
static char *or_null(char *text)
{
	return text[0] == '\0' ? NULL : text;
}

static bool same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Refused as a whole or taken: only labels that are no JSON are a reason. */
static bool insert_sandbox(const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	int rc = row_sandbox_insert(db, row, &err);
	if (rc < 0) {
		fuzz_check_err(&err);
		assert(err.code == ERR_INTERNAL && row->labels != NULL);
		return false;
	}
	assert(rc == 1);
	return true;
}

static void check_sandbox(const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW got = {0}, other = {0};
	assert(row_sandbox_by_name(db, row->principal, row->name, &got, &err) == 1);
	assert(strcmp(got.id, row->id) == 0 && got.state == row->state);
	assert(same(got.principal, row->principal) && same(got.name, row->name));
	assert(same(got.template, row->template) && same(got.labels, row->labels));
	assert(row_sandbox_by_id(db, "another", row->id, &other, &err) ==
	       (strcmp(row->principal, "another") == 0));
}

static void check_link(const struct sandbox_row *sandbox, char *path)
{
	struct err err = ERR_INIT;
	AUTO_LINK_ROW got = {0};
	const struct link_row row = {
		.id = OTHER_ID,
		.sandbox_id = SANDBOX_ID,
		.principal = sandbox->principal,
		.op = LINK_PUT,
		.path = path,
	};
	assert(row_link_insert(db, &row, &err) == 1);
	assert(row_link_get(db, row.id, &got, &err) == 1);
	assert(same(got.principal, row.principal) && same(got.path, row.path));
	assert(got.op == row.op && !got.used);
	assert(row_link_claim(db, row.id, 1, &err) == 1 &&
	       row_link_claim(db, row.id, 2, &err) == 0);
}

static void check_task(struct task_row *row)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW got = {0};
	assert(row_task_insert(db, row, &err) == 1);
	row->state = TASK_UNKNOWN;
	assert(row_task_finish(db, row, &err) == 1 && row_task_finish(db, row, &err) == 0);
	int rc = row->request_id == NULL ? row_task_by_id(db, row->principal, row->id, &got, &err)
					 : row_task_by_request(db, row->principal, SANDBOX_ID,
							       row->request_id, &got, &err);
	assert(rc == 1 && strcmp(got.id, row->id) == 0);
	assert(same(got.command, row->command) && same(got.request_id, row->request_id));
	assert(same(got.reason, row->reason) && got.state == TASK_UNKNOWN);
}

static void open_once(void)
{
	struct err err = ERR_INIT;
	if (db != NULL)
		return;
	AUTO_FREE char *path = xasprintf("%s/state.db", fuzz_tempdir());
	db = db_open(path, &err);
	assert(db != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	AUTO_FREE char *principal = fuzz_line(&in), *name = fuzz_line(&in);
	AUTO_FREE char *template = fuzz_line(&in), *labels = fuzz_line(&in);
	AUTO_FREE char *path = fuzz_line(&in), *request_id = fuzz_line(&in);
	AUTO_FREE char *command = fuzz_line(&in), *reason = fuzz_line(&in);
	const struct sandbox_row sandbox = {
		.id = SANDBOX_ID,
		.files_id = SANDBOX_ID,
		.principal = principal,
		.name = name,
		.state = SANDBOX_LIVE,
		.template = template,
		.network = template,
		.labels = or_null(labels),
	};
	struct task_row task = {
		.id = OTHER_ID,
		.sandbox_id = SANDBOX_ID,
		.principal = principal,
		.request_id = or_null(request_id),
		.origin = TASK_ORIGIN_JOB,
		.command = command,
		.state = TASK_RUNNING,
		.reason = or_null(reason),
	};
	struct err err = ERR_INIT;
	open_once();
	AUTO_TX tx = TX_INIT; /* never committed: the next input meets an empty database */
	assert(db_begin(db, &tx, &err));
	if (!insert_sandbox(&sandbox))
		return 0;
	check_sandbox(&sandbox);
	check_link(&sandbox, path);
	check_task(&task);
	return 0;
}
