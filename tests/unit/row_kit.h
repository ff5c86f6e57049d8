/* For tests of tables: a database in a fresh directory, and children that work on it at once. */
#ifndef SPOOLBOX_ROW_KIT_H
#define SPOOLBOX_ROW_KIT_H

#include "unit.h"

#include <sys/wait.h>

#include "base/clock.h"
#include "store/row_sandbox.h"

static char *kit_dir, *kit_path;
static struct db *db;

static inline struct db *kit_open(void)
{
	struct err err = ERR_INIT;
	struct db *opened = db_open(kit_path, &err);
	ck_ok(opened != NULL, err);
	return opened;
}

static inline void setup(void)
{
	kit_dir = unit_tempdir();
	kit_path = xasprintf("%s/state.db", kit_dir);
	db = kit_open();
}

static inline void teardown(void)
{
	db_close(db);
	free(kit_path);
	unit_tempdir_remove(kit_dir);
}

/* A row with made-up id; strings are literals, so it is not to be finished. */
static inline struct sandbox_row kit_row(char *principal, char *name)
{
	struct sandbox_row row = {
		.principal = principal,
		.name = name,
		.state = SANDBOX_LIVE,
		.template = (char *)"base",
		.network = (char *)"loopback",
		.created_at = 1000,
		.last_used_at = 1000,
	};
	id_make(row.id);
	memcpy(row.files_id, row.id, sizeof(row.id));
	return row;
}

#define NAME(literal) ((char *)(literal))

/* Runs work in count children, each with a connection of its own, and returns how many of them
 * answered true. A child that ends otherwise fails the test. */
typedef bool kit_work(struct db *mine, int index, void *ctx);
static inline int kit_run(int count, kit_work *work, void *ctx)
{
	for (int i = 0; i < count; i++) {
		if (fork() != 0)
			continue;
		struct err err = ERR_INIT;
		struct db *mine = db_open(kit_path, &err);
		bool yes = mine != NULL && work(mine, i, ctx);
		db_close(mine);
		_exit(mine == NULL ? 2 : yes ? 0 : 1);
	}
	int status, yes = 0;
	while (wait(&status) > 0) {
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
		yes += WEXITSTATUS(status) == 0;
	}
	return yes;
}

#endif
