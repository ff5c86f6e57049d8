#include "sandbox_kit.h"

#include <dirent.h>

#include "base/json.h"
#include "base/lock.h"
#include "base/proc.h"
#include "box/files.h"
#include "box/sandbox_end.h"

static enum err_code find(const char *handle)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	return sandbox_find(&app, ALICE, handle, &row, &err) ? ERR_NONE : err.code;
}

static enum err_code create(const struct sandbox_options *options, struct err *err)
{
	bool created;
	AUTO_SANDBOX_ROW row = {0};
	*err = (struct err)ERR_INIT;
	return sandbox_create(&app, ALICE, options, &row, &created, err) ? ERR_NONE : err->code;
}

static enum err_code destroy(const char *handle, bool delete_files)
{
	struct err err = ERR_INIT;
	struct sandbox_destroyed out = {0};
	bool ok = sandbox_destroy(&app, ALICE, handle, delete_files, &out, &err);
	if (ok)
		ck_assert_int_eq(out.files_deleted, delete_files);
	free(out.name);
	return ok ? ERR_NONE : err.code;
}

static int data_entries(void)
{
	DIR *dir = opendir(conf.data_dir);
	int count = 0;
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
		count += id_is_valid(entry->d_name);
	closedir(dir);
	return count;
}

/* --- names, options ------------------------------------------------------------------------ */

TEST(a_named_sandbox_is_persistent_and_has_files)
{
	setup();
	AUTO_SANDBOX_ROW row = kit_named("work");
	ck_assert_str_eq(row.name, "work");
	ck_assert(id_is_valid(row.id));
	ck_assert_str_eq(row.id, row.files_id);
	ck_assert_str_eq(row.template, "base");
	ck_assert_str_eq(row.network, "loopback");
	ck_assert_int_eq(row.ttl_ms, 0);
	ck_assert_int_eq(row.expires_at, 0);
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	ck_assert(kit_exists("data", row.files_id, "/incoming"));
	ck_assert_int_eq(find("work"), ERR_NONE);
	ck_assert_int_eq(find(row.id), ERR_NONE);
	ck_assert_int_eq(kit_count('S'), 0);
	teardown();
}
TEST_END

TEST(a_sandbox_without_a_name_gets_one_and_a_lifetime)
{
	setup();
	AUTO_SANDBOX_ROW row = kit_create(&(struct sandbox_options){0});
	ck_assert(name_is_valid(row.name));
	ck_assert_int_eq(row.ttl_ms, 3600 * 1000);
	ck_assert_int_eq(row.expires_at, row.created_at + row.ttl_ms);
	AUTO_SANDBOX_ROW other = kit_create(&(struct sandbox_options){.ttl_ms = 5000});
	ck_assert_str_ne(row.name, other.name);
	ck_assert_int_eq(other.ttl_ms, 5000);
	teardown();
}
TEST_END

TEST(the_network_of_the_settings_is_the_default)
{
	setup();
	conf.network = CONF_NETWORK_NONE;
	AUTO_SANDBOX_ROW none = kit_named("a");
	ck_assert_str_eq(none.network, "none");
	AUTO_SANDBOX_ROW given =
		kit_create(&(struct sandbox_options){.name = "b", .network = "loopback"});
	ck_assert_str_eq(given.network, "loopback");
	teardown();
}
TEST_END

TEST(bad_options_are_refused_before_anything_is_made)
{
	setup();
	static const char *const names[] = {
		"../x",
		"..",
		".",
		"a/b",
		"-a",
		"_a",
		"a b",
		"a\n",
		"\xc3\xa4",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"0123456789abcdef0123456789abcdef"};
	struct err err;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		ck_assert_int_eq(create(&(struct sandbox_options){.name = names[i]}, &err),
				 ERR_INVALID);
	static const char *const networks[] = {"bridge", "full", "Loopback", "host"};
	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		struct sandbox_options options = {.name = "a", .network = networks[i]};
		ck_assert_int_eq(create(&options, &err), ERR_INVALID);
		ck_assert_ptr_nonnull(strstr(err.msg, "\"none\" and \"loopback\""));
	}
	ck_assert_int_eq(create(&(struct sandbox_options){.template = "python:3.12"}, &err),
			 ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "this server has: base"));
	static const int64_t ttls[] = {-1,        1,        999, SANDBOX_TTL_MAX_S * 1000 + 1,
				       INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < ARRAY_LEN(ttls); i++)
		ck_assert_int_eq(create(&(struct sandbox_options){.ttl_ms = ttls[i]}, &err),
				 ERR_INVALID);
	ck_assert_int_eq(data_entries(), 0);
	teardown();
}
TEST_END

TEST(env_and_labels_are_objects_of_strings)
{
	setup();
	static const char *const bad_envs[] = {
		"{\"1A\":\"x\"}", "{\"A-B\":\"x\"}",     "{\"\":\"x\"}",    "{\"A=B\":\"x\"}",
		"{\"A\":1}",      "{\"A\":null}",        "{\"A\":[\"x\"]}", "{\"A\":\"x\\u0000y\"}",
		"[\"A\"]",        "{\"\xc3\xa4\":\"x\"}"};
	struct err err;
	for (size_t i = 0; i < ARRAY_LEN(bad_envs); i++) {
		AUTO_JSON *env = json_literal(bad_envs[i]);
		ck_assert_msg(create(&(struct sandbox_options){.env = env}, &err) == ERR_INVALID,
			      "%s", bad_envs[i]);
		ck_assert_ptr_nonnull(strstr(err.msg, "env"));
	}
	AUTO_JSON *big = json_object_new_object();
	AUTO_FREE char *value = xcalloc(1, SANDBOX_TEXTS_MAX + 1);
	memset(value, 'x', SANDBOX_TEXTS_MAX);
	json_add_str(big, "A", value);
	ck_assert_int_eq(create(&(struct sandbox_options){.env = big}, &err), ERR_TOO_LARGE);
	ck_assert_int_eq(create(&(struct sandbox_options){.labels = big}, &err), ERR_TOO_LARGE);
	AUTO_JSON *number = json_literal("{\"team\":1}");
	ck_assert_int_eq(create(&(struct sandbox_options){.labels = number}, &err), ERR_INVALID);
	ck_assert_int_eq(data_entries(), 0);

	AUTO_JSON *env = json_literal("{\"_A1\":\"x=y\",\"EMPTY\":\"\"}");
	AUTO_JSON *labels = json_literal("{\"any name\":\"v\"}");
	AUTO_SANDBOX_ROW row = kit_create(&(struct sandbox_options){.env = env, .labels = labels});
	ck_assert_str_eq(row.env, "{\"_A1\":\"x=y\",\"EMPTY\":\"\"}");
	ck_assert_str_eq(row.labels, "{\"any name\":\"v\"}");
	teardown();
}
TEST_END

TEST(creating_a_name_again_returns_it_unless_other_options_are_asked_for)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_JSON *env = json_literal("{\"A\":\"1\",\"B\":\"2\"}");
	AUTO_JSON *same = json_literal("{\"B\":\"2\",\"A\":\"1\"}");
	AUTO_JSON *other = json_literal("{\"A\":\"1\"}");
	struct sandbox_options full = {
		.name = "work", .env = env, .ttl_ms = 9000, .network = "none"};
	AUTO_SANDBOX_ROW first = kit_create(&full);
	struct sandbox_options fitting[] = {
		full,
		{.name = "work"},
		{.name = "work", .env = same},
		{.name = "work", .template = "base"},
	};
	for (size_t i = 0; i < ARRAY_LEN(fitting); i++) {
		bool created = true;
		AUTO_SANDBOX_ROW row = {0};
		ck_ok(sandbox_create(&app, ALICE, &fitting[i], &row, &created, &err), err);
		ck_assert(!created);
		ck_assert_str_eq(row.id, first.id);
	}
	struct sandbox_options differing[] = {
		{.name = "work", .env = other},
		{.name = "work", .labels = other},
		{.name = "work", .ttl_ms = 8000},
		{.name = "work", .network = "loopback"},
	};
	static const char *const words[] = {"env", "labels", "timeout", "network"};
	for (size_t i = 0; i < ARRAY_LEN(differing); i++) {
		ck_assert_int_eq(create(&differing[i], &err), ERR_EXISTS);
		ck_assert_ptr_nonnull(strstr(err.msg, words[i]));
	}
	ck_assert_int_eq(data_entries(), 1);
	teardown();
}
TEST_END

/* --- find, ensure -------------------------------------------------------------------------- */

TEST(what_is_not_there_is_not_found_and_another_principal_reads_the_same)
{
	setup();
	AUTO_SANDBOX_ROW row = kit_named("work");
	struct err err = ERR_INIT, unknown = ERR_INIT;
	AUTO_SANDBOX_ROW got = {0};
	ck_assert(!sandbox_find(&app, "bob", "work", &got, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	destroy("work", true);
	ck_assert(!sandbox_find(&app, ALICE, "work", &got, &unknown));
	ck_assert_str_eq(err.msg, unknown.msg);
	ck_assert_str_eq(err.hint, unknown.hint);
	ck_assert_int_eq(find(row.id), ERR_NOT_FOUND);
	ck_assert_int_eq(find("../work"), ERR_INVALID);
	ck_assert_int_eq(find(""), ERR_INVALID);
	teardown();
}
TEST_END

TEST(ensure_makes_a_missing_name_but_never_an_id)
{
	setup();
	struct err err = ERR_INIT;
	bool created = false;
	AUTO_SANDBOX_ROW row = {0}, again = {0}, by_id = {0}, none = {0};
	ck_ok(sandbox_ensure(&app, ALICE, "work", &row, &created, &err), err);
	ck_assert(created);
	ck_assert_int_eq(row.ttl_ms, 0);
	ck_ok(sandbox_ensure(&app, ALICE, "work", &again, &created, &err), err);
	ck_assert(!created);
	ck_assert_str_eq(row.id, again.id);
	ck_ok(sandbox_ensure(&app, ALICE, row.id, &by_id, &created, &err), err);
	ck_assert(!created);
	char id[ID_LEN + 1];
	id_make(id);
	ck_assert(!sandbox_ensure(&app, ALICE, id, &none, &created, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert(!sandbox_ensure(&app, ALICE, "../x", &none, &created, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_int_eq(data_entries(), 1);
	teardown();
}
TEST_END

/* --- limits, lifetimes --------------------------------------------------------------------- */

static void make_explicit(const char *name)
{
	struct sandbox_row row =
		kit_create(&(struct sandbox_options){.name = name, .is_explicit = true});
	sandbox_row_finish(&row);
	clock_sleep_ms(2); /* the next one is newer */
}

/* The name of the default sandbox, or "". */
static const char *default_name(const char *principal)
{
	static char name[NAME_MAX_LEN + 1];
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	name[0] = '\0';
	if (sandbox_find_default(&app, principal, &row, &err))
		snprintf(name, sizeof(name), "%s", row.name);
	else
		ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	return name;
}

TEST(the_default_is_the_newest_live_one_that_was_asked_for)
{
	setup();
	struct err err = ERR_INIT;
	ck_assert_str_eq(default_name(ALICE), "");
	kit_make("by-use");
	ck_assert_str_eq(default_name(ALICE), "");
	make_explicit("z-first");
	make_explicit("m-second");
	make_explicit("a-third");
	kit_make("by-use-later");
	ck_assert_str_eq(default_name(ALICE), "a-third");
	ck_assert_str_eq(default_name("bob"), "");
	struct sandbox_destroyed gone = {0};
	ck_ok(sandbox_destroy(&app, ALICE, "a-third", false, &gone, &err), err);
	free(gone.name);
	ck_assert_str_eq(default_name(ALICE), "m-second");
	kit_sql("UPDATE sandbox SET ttl_ms = 1000, expires_at = last_used_at - 86400000 WHERE name "
		"= 'm-second'");
	ck_assert_str_eq(default_name(ALICE), "z-first");
	teardown();
}
TEST_END

TEST(entering_for_a_task_does_not_renew_the_lifetime)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row =
		kit_create(&(struct sandbox_options){.name = "work", .ttl_ms = 60000});
	kit_sql("UPDATE sandbox SET last_used_at = last_used_at - 30000,"
		" expires_at = expires_at - 30000");
	int64_t end = row.expires_at - 30000;
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter_for_task(&app, &row, &use, &err), err);
	sandbox_leave(&use);
	AUTO_SANDBOX_ROW after = {0};
	ck_assert_int_eq(row_sandbox_by_id(app.db, ALICE, row.id, &after, &err), 1);
	ck_assert_int_eq(after.expires_at, end);
	ck_assert_int_ge(after.last_used_at, row.last_used_at); /* it is not idle, though */
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	AUTO_SANDBOX_ROW renewed = {0};
	ck_assert_int_eq(row_sandbox_by_id(app.db, ALICE, row.id, &renewed, &err), 1);
	ck_assert_int_gt(renewed.expires_at, end);
	sandbox_row_finish(&row);
	teardown();
}
TEST_END

TEST(at_the_limit_only_existing_names_are_answered)
{
	setup();
	struct err err = ERR_INIT;
	conf.max_sandboxes = 2;
	kit_make("a");
	kit_make("b");
	ck_assert_int_eq(create(&(struct sandbox_options){.name = "c"}, &err), ERR_QUOTA);
	ck_assert(err_retryable(err.code));
	ck_assert_ptr_nonnull(strstr(err.msg, "2"));
	ck_assert_int_eq(create(&(struct sandbox_options){.name = "a"}, &err), ERR_NONE);
	ck_assert_int_eq(data_entries(), 2);
	/* A kept one does not count. */
	ck_assert_int_eq(destroy("a", false), ERR_NONE);
	ck_assert_int_eq(create(&(struct sandbox_options){.name = "c"}, &err), ERR_NONE);
	ck_assert_int_eq(create(&(struct sandbox_options){.name = "a"}, &err), ERR_QUOTA);
	teardown();
}
TEST_END

TEST(too_little_disk_refuses_new_sandboxes)
{
	setup();
	struct err err = ERR_INIT;
	conf.min_free = INT64_MAX;
	ck_assert_int_eq(create(&(struct sandbox_options){.name = "a"}, &err), ERR_QUOTA);
	ck_assert_ptr_nonnull(strstr(err.msg, "disk"));
	ck_assert_int_eq(data_entries(), 0);
	teardown();
}
TEST_END

static void let_expire(const char *name)
{
	AUTO_FREE char *sql = xasprintf("UPDATE sandbox SET expires_at = expires_at - 86400000,"
					" last_used_at = last_used_at - 86400000"
					" WHERE name = '%s' AND state = 'live'",
					name);
	kit_sql(sql);
}

TEST(a_sandbox_whose_time_is_over_does_not_answer_and_makes_room)
{
	setup();
	struct err err = ERR_INIT;
	conf.max_sandboxes = 2;
	AUTO_SANDBOX_ROW a = kit_create(&(struct sandbox_options){.name = "a", .ttl_ms = 9000});
	kit_make("b");
	ck_assert(!sandbox_is_over(&app, &a));
	let_expire("a");
	ck_assert_int_eq(find("a"), ERR_NOT_FOUND);
	ck_assert_int_eq(find(a.id), ERR_NOT_FOUND);
	ck_assert_int_eq(create(&(struct sandbox_options){.name = "c"}, &err), ERR_NONE);
	ck_assert(!kit_exists("data", a.files_id, ""));
	ck_assert(!kit_exists("run", a.id, ""));
	ck_assert_int_eq(find("b"), ERR_NONE);
	teardown();
}
TEST_END

TEST(the_name_of_one_whose_time_is_over_can_be_used_at_once)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW a = kit_create(&(struct sandbox_options){.name = "a", .ttl_ms = 9000});
	let_expire("a");
	bool created = false;
	AUTO_SANDBOX_ROW row = {0};
	ck_ok(sandbox_ensure(&app, ALICE, "a", &row, &created, &err), err);
	ck_assert(created);
	ck_assert_str_ne(row.id, a.id);
	ck_assert_str_ne(row.files_id, a.files_id);
	ck_assert(!kit_exists("data", a.files_id, ""));
	teardown();
}
TEST_END

TEST(a_sandbox_in_use_outlives_its_time)
{
	setup();
	struct err err = ERR_INIT;
	conf.max_sandboxes = 1;
	AUTO_SANDBOX_ROW a = kit_create(&(struct sandbox_options){.name = "a", .ttl_ms = 9000});
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &a, &use, &err), err);
	let_expire("a");
	ck_assert_int_eq(find("a"), ERR_NONE);
	ck_assert_int_eq(create(&(struct sandbox_options){.name = "b"}, &err), ERR_QUOTA);
	ck_assert(kit_exists("data", a.files_id, "/workspace"));
	/* The attempt to end it renewed it, and so does the end of long work. */
	let_expire("a");
	sandbox_touch(&app, &a);
	sandbox_leave(&use);
	ck_assert_int_eq(find("a"), ERR_NONE);
	teardown();
}
TEST_END

/* --- enter, start -------------------------------------------------------------------------- */

TEST(entering_opens_the_directories_and_starts_nothing)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	ck_assert_int_ge(use.workspace_fd, 0);
	ck_assert_int_ge(use.incoming_fd, 0);
	ck_assert_int_eq(use.box.run_dir_fd, use.run_dir_fd);
	ck_assert_str_eq(use.box.workspace_path, use.workspace_path);
	ck_assert(use.box.inet);
	ck_assert_int_eq(use.box.tmp_bytes, conf.tmp_size);
	ck_assert_int_eq(sandbox_running(&app, &row, &err), 0);
	ck_ok(sandbox_start(&app, &row, &use, &err), err);
	ck_ok(sandbox_start(&app, &row, &use, &err), err);
	ck_assert_int_eq(sandbox_running(&app, &row, &err), 1);
	ck_assert_int_eq(kit_count('S'), 1);
	/* Two users at once. */
	AUTO_SANDBOX_USE second = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &second, &err), err);
	teardown();
}
TEST_END

TEST(looking_whether_it_runs_makes_nothing)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	ck_assert_int_eq(sandbox_running(&app, &row, &err), 0);
	ck_assert(!kit_exists("run", row.id, ""));
	teardown();
}
TEST_END

TEST(a_stale_row_can_neither_be_entered_nor_started)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_USE before = SANDBOX_USE_INIT, after = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &before, &err), err);
	ck_assert_int_eq(destroy("work", true), ERR_NONE);
	ck_assert(!sandbox_start(&app, &row, &before, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	ck_assert(!sandbox_enter(&app, &row, &after, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	ck_assert_int_eq(after.use_fd, -1);
	ck_assert_int_eq(kit_count('S'), 0);
	ck_assert(!kit_exists("run", row.id, ""));
	teardown();
}
TEST_END

TEST(a_row_that_went_while_the_start_lock_was_waited_for_is_not_started)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	ck_assert_int_eq(row_sandbox_move(app.db, row.id, SANDBOX_LIVE, SANDBOX_GONE, 1, &err), 1);
	ck_assert(!sandbox_start(&app, &row, &use, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	ck_assert_int_eq(kit_count('S'), 0);
	teardown();
}
TEST_END

static char *going;

/* A destroy that lost patience takes the row away in the middle of a start. */
static bool start_while_it_goes(const struct runtime_box *box, struct err *err)
{
	ck_assert_int_eq(row_sandbox_move(app.db, going, SANDBOX_LIVE, SANDBOX_GONE, 1, err), 1);
	return fake_start(box, err);
}

TEST(a_row_that_went_during_the_start_is_stopped_again)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	going = row.id;
	fake.start = start_while_it_goes;
	ck_assert(!sandbox_start(&app, &row, &use, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	ck_assert_int_eq(kit_count('S'), 1);
	ck_assert_int_eq(kit_count('X'), 1);
	ck_assert_int_eq(fake_alive(&use.box, &err), 0);
	teardown();
}
TEST_END

/* --- destroy ------------------------------------------------------------------------------- */

TEST(destroy_stops_it_and_removes_the_files)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	{
		AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
		ck_ok(sandbox_enter(&app, &row, &use, &err), err);
		ck_ok(sandbox_start(&app, &row, &use, &err), err);
	}
	struct sandbox_destroyed out = {0};
	ck_ok(sandbox_destroy(&app, ALICE, "work", true, &out, &err), err);
	ck_assert_str_eq(out.id, row.id);
	ck_assert_str_eq(out.name, "work");
	ck_assert(out.was_running);
	ck_assert(out.files_deleted);
	free(out.name);
	ck_assert_int_eq(kit_count('X'), 1);
	ck_assert(!kit_exists("data", row.files_id, ""));
	ck_assert(!kit_exists("run", row.id, ""));
	ck_assert_int_eq(destroy("work", true), ERR_NOT_FOUND);
	ck_assert_int_eq(destroy(row.id, true), ERR_NOT_FOUND);
	ck_assert_int_eq(destroy("..", true), ERR_INVALID);
	teardown();
}
TEST_END

static bool see_entry(void *ctx, const struct files_entry *entry)
{
	(void)ctx;
	(void)entry;
	return true;
}

/* Whatever a call met in the course of a destroy, that is the reason. */
TEST(who_works_on_files_that_a_destroy_took_away_learns_so)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	ck_ok(files_write(&use, "sub/file", "x", 1, &err), err);
	AUTO_FILES_DRAFT draft = FILES_DRAFT_INIT;
	ck_ok(files_draft_open(&use, &draft, &err), err);
	ck_assert(sandbox_confirm(&use, &err));
	ck_assert_int_eq(err.code, ERR_NONE);
	ck_assert_int_eq(destroy("work", true), ERR_NONE);

	AUTO_FILES_DRAFT second = FILES_DRAFT_INIT;
	int64_t total;
	struct err errors[7];
	memset(errors, 0, sizeof(errors));
	ck_assert(!files_draft_publish(&draft, "sub/file", &errors[0]));
	ck_assert(!files_draft_publish(&draft, "file", &errors[1]));
	ck_assert(!files_draft_open(&use, &second, &errors[2]));
	ck_assert_int_eq(files_open(&use, "sub/file", NULL, &errors[3]), -1);
	ck_assert(!files_list(&use, "", 0, 9, see_entry, NULL, &total, &errors[4]));
	ck_assert(!files_list(&use, "sub", 0, 9, see_entry, NULL, &total, &errors[5]));
	ck_assert(!sandbox_confirm(&use, &errors[6]));
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		ck_assert_msg(errors[i].code == ERR_DESTROYED, "%zu: %s", i, errors[i].msg);
	teardown();
}
TEST_END

TEST(kept_files_come_back_with_the_next_sandbox_of_the_name)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW first = kit_named("work");
	AUTO_FREE char *file = xasprintf("%s/%s/workspace/file", conf.data_dir, first.files_id);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(destroy("work", false), ERR_NONE);
	ck_assert_int_eq(find("work"), ERR_NOT_FOUND);
	ck_assert_int_eq(find(first.id), ERR_NOT_FOUND);
	ck_assert_int_eq(destroy("work", false), ERR_NOT_FOUND);
	AUTO_SANDBOX_ROW second = kit_named("work");
	ck_assert_str_ne(second.id, first.id);
	ck_assert_str_eq(second.files_id, first.files_id);
	ck_assert_int_eq(access(file, F_OK), 0);
	/* The old incarnation is gone for good. */
	AUTO_SANDBOX_ROW old = {0};
	ck_assert_int_eq(row_sandbox_by_id(app.db, ALICE, first.id, &old, &err), 1);
	ck_assert_int_eq(old.state, SANDBOX_GONE);
	ck_assert_int_eq(destroy("work", false), ERR_NONE);
	ck_assert_int_eq(destroy("work", true), ERR_NONE);
	ck_assert_int_eq(data_entries(), 0);
	teardown();
}
TEST_END

TEST(a_kept_sandbox_that_still_runs_is_stopped_before_its_files_are_taken_over)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW first = kit_named("work");
	{
		AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
		ck_ok(sandbox_enter(&app, &first, &use, &err), err);
		ck_ok(sandbox_start(&app, &first, &use, &err), err);
	}
	/* As if a destroy had been killed after its first step. */
	ck_assert_int_eq(row_sandbox_move(app.db, first.id, SANDBOX_LIVE, SANDBOX_KEPT, 1, &err),
			 1);
	AUTO_SANDBOX_ROW second = kit_named("work");
	ck_assert_str_eq(second.files_id, first.files_id);
	ck_assert_int_eq(kit_count('X'), 1);
	ck_assert(!kit_exists("run", first.id, ""));
	teardown();
}
TEST_END

TEST(a_destroy_that_cannot_get_the_start_lock_still_ends_it)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	AUTO_FD hanging = lock_open(use.run_dir_fd, "start", &err);
	ck_ok(lock_take(hanging, LOCK_EXCLUSIVE, 0, &err), err);
	ck_assert_int_eq(destroy("work", true), ERR_NONE);
	ck_assert_int_eq(kit_count('X'), 1);
	ck_assert(!kit_exists("run", row.id, ""));
	teardown();
}
TEST_END

/* --- many at once -------------------------------------------------------------------------- */

static int create_one(int index)
{
	struct err err;
	AUTO_FREE char *name = xasprintf("box-%d", index);
	return (int)create(&(struct sandbox_options){.name = name}, &err);
}

TEST(fifty_creates_at_once_with_room_for_twenty_give_exactly_twenty)
{
	setup();
	int statuses[100];
	kit_run(50, create_one, statuses);
	ck_assert_int_eq(statuses[ERR_NONE], 20);
	ck_assert_int_eq(statuses[ERR_QUOTA], 30);
	ck_assert_int_eq(data_entries(), 20);
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_sandbox_count_live(app.db, &err), 20);
	teardown();
}
TEST_END

static int ensure_same(int index)
{
	(void)index;
	struct err err = ERR_INIT;
	bool created;
	AUTO_SANDBOX_ROW row = {0};
	if (!sandbox_ensure(&app, ALICE, "work", &row, &created, &err))
		return 50 + (int)err.code;
	return created;
}

TEST(of_many_that_create_one_name_one_creates_and_all_get_it)
{
	setup();
	int statuses[100];
	/* The last free place is no reason to refuse the losers. */
	conf.max_sandboxes = 1;
	kit_run(16, ensure_same, statuses);
	ck_assert_int_eq(statuses[1], 1);
	ck_assert_int_eq(statuses[0], 15);
	ck_assert_int_eq(data_entries(), 1);
	/* And again when its files are kept. */
	ck_assert_int_eq(destroy("work", false), ERR_NONE);
	kit_run(16, ensure_same, statuses);
	ck_assert_int_eq(statuses[1], 1);
	ck_assert_int_eq(statuses[0], 15);
	ck_assert_int_eq(data_entries(), 1);
	/* And when its time is over. */
	kit_sql("UPDATE sandbox SET ttl_ms = 60000, expires_at = last_used_at - 86400000 WHERE "
		"state = 'live'");
	kit_run(16, ensure_same, statuses);
	ck_assert_int_eq(statuses[1], 1);
	ck_assert_int_eq(statuses[0], 15);
	ck_assert_int_eq(data_entries(), 1);
	teardown();
}
TEST_END

/* The first decides slowly; the second finds the lock taken. Whoever comes first, it ends. */
static int end_together(int index)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	if (row_sandbox_by_name(app.db, ALICE, "work", &row, &err) != 1)
		return err.code == ERR_NONE ? 0 : 1;
	clock_sleep_ms(index * 30);
	if (index > 0)
		return sandbox_expire(&app, &row, &err) ? 0 : 1;
	if (sandbox_hold(&app, &row, &hold, &err) != SANDBOX_HELD)
		return err.code == ERR_NONE ? 0 : 1;
	clock_sleep_ms(100);
	return sandbox_end_row(&app, &hold, &err) == 1 &&
			       sandbox_remove(&app, &row, true, NULL, &err)
		       ? 0
		       : 2;
}

TEST(who_finds_that_a_sandbox_is_just_being_ended_does_not_renew_it)
{
	setup();
	int statuses[100];
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	kit_make("work");
	kit_sql("UPDATE sandbox SET ttl_ms = 60000, expires_at = last_used_at - 86400000");
	kit_run(2, end_together, statuses);
	ck_assert_int_eq(statuses[0], 2);
	ck_assert_int_eq(row_sandbox_by_name(app.db, ALICE, "work", &row, &err), 0);
	teardown();
}
TEST_END

static int start_shared(int index)
{
	(void)index;
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	if (!sandbox_find(&app, ALICE, "work", &row, &err) ||
	    !sandbox_enter(&app, &row, &use, &err) || !sandbox_start(&app, &row, &use, &err))
		return (int)err.code;
	return 0;
}

TEST(of_many_that_start_a_sandbox_one_starts_it)
{
	setup();
	kit_make("work");
	int statuses[100];
	kit_slow_ms = 50;
	kit_run(8, start_shared, statuses);
	ck_assert_int_eq(statuses[0], 8);
	ck_assert_int_eq(kit_count('S'), 1);
	teardown();
}
TEST_END

static int start_or_destroy(int index)
{
	if (index != 4)
		return start_shared(index);
	clock_sleep_ms(10);
	return 90 + (destroy("work", true) != ERR_NONE);
}

TEST(a_destroy_among_starts_leaves_nothing_running)
{
	setup();
	for (int round = 0; round < 10; round++) {
		AUTO_SANDBOX_ROW row = kit_named("work");
		int statuses[100];
		kit_slow_ms = round * 4;
		kit_run(8, start_or_destroy, statuses);
		ck_assert_int_eq(statuses[90], 1);
		ck_assert_int_eq(statuses[0] + statuses[ERR_DESTROYED] + statuses[ERR_NOT_FOUND],
				 7);
		ck_assert(!kit_exists("run", row.id, ""));
		ck_assert(!kit_exists("data", row.files_id, ""));
	}
	teardown();
}
TEST_END

static int create_and_destroy_for_ever(int index)
{
	for (int i = index;; i++) {
		struct err err = ERR_INIT;
		AUTO_SANDBOX_ROW row = {0};
		AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
		bool created;
		if (!sandbox_ensure(&app, ALICE, i % 2 ? "odd" : "even", &row, &created, &err) ||
		    !sandbox_enter(&app, &row, &use, &err) ||
		    !sandbox_start(&app, &row, &use, &err))
			return (int)err.code;
		sandbox_leave(&use);
		if (destroy(row.name, i % 3 != 0) != ERR_NONE)
			return 98;
	}
}

static bool has_files(void *ctx, const struct sandbox_row *row)
{
	int *count = ctx;
	ck_assert_msg(kit_exists("data", row->files_id, "/workspace"), "%s has no files",
		      row->name);
	ck_assert_msg(kit_exists("data", row->files_id, "/incoming"), "%s has no files", row->name);
	++*count;
	return true;
}

TEST(a_process_killed_anywhere_leaves_no_row_without_files_and_no_name_stuck)
{
	setup();
	for (int round = 0; round < 60; round++) {
		app_close(&app);
		pid_t pid = fork();
		if (pid == 0) {
			kit_reopen();
			_exit(create_and_destroy_for_ever(round));
		}
		usleep((useconds_t)(round * 733 % 30000));
		kill(pid, SIGKILL);
		int status;
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(WIFSIGNALED(status), "ended with %d", WEXITSTATUS(status));
		kit_open();
		struct err err = ERR_INIT;
		int count = 0;
		ck_ok(row_sandbox_each(app.db, ALICE, has_files, &count, &err), err);
		ck_assert_int_le(count, 2);
		static const char *const names[] = {"odd", "even"};
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			bool created;
			AUTO_SANDBOX_ROW row = {0};
			AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
			ck_ok(sandbox_ensure(&app, ALICE, names[i], &row, &created, &err), err);
			ck_ok(sandbox_enter(&app, &row, &use, &err), err);
			ck_ok(sandbox_start(&app, &row, &use, &err), err);
		}
	}
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_named_sandbox_is_persistent_and_has_files,
		a_sandbox_without_a_name_gets_one_and_a_lifetime,
		the_network_of_the_settings_is_the_default,
		bad_options_are_refused_before_anything_is_made,
		env_and_labels_are_objects_of_strings,
		creating_a_name_again_returns_it_unless_other_options_are_asked_for,
		what_is_not_there_is_not_found_and_another_principal_reads_the_same,
		ensure_makes_a_missing_name_but_never_an_id,
		the_default_is_the_newest_live_one_that_was_asked_for,
		entering_for_a_task_does_not_renew_the_lifetime,
		at_the_limit_only_existing_names_are_answered,
		too_little_disk_refuses_new_sandboxes,
		a_sandbox_whose_time_is_over_does_not_answer_and_makes_room,
		the_name_of_one_whose_time_is_over_can_be_used_at_once,
		a_sandbox_in_use_outlives_its_time,
		entering_opens_the_directories_and_starts_nothing,
		looking_whether_it_runs_makes_nothing,
		a_stale_row_can_neither_be_entered_nor_started,
		a_row_that_went_while_the_start_lock_was_waited_for_is_not_started,
		a_row_that_went_during_the_start_is_stopped_again,
		destroy_stops_it_and_removes_the_files,
		who_works_on_files_that_a_destroy_took_away_learns_so,
		kept_files_come_back_with_the_next_sandbox_of_the_name,
		a_kept_sandbox_that_still_runs_is_stopped_before_its_files_are_taken_over,
		a_destroy_that_cannot_get_the_start_lock_still_ends_it,
		fifty_creates_at_once_with_room_for_twenty_give_exactly_twenty,
		of_many_that_create_one_name_one_creates_and_all_get_it,
		who_finds_that_a_sandbox_is_just_being_ended_does_not_renew_it,
		of_many_that_start_a_sandbox_one_starts_it,
		a_destroy_among_starts_leaves_nothing_running,
		a_process_killed_anywhere_leaves_no_row_without_files_and_no_name_stuck,
	};
	return unit_run("sandbox", unit_tests, ARRAY_LEN(unit_tests));
}
