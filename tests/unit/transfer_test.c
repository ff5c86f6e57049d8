/* Transfers against a real database, spool and key, with bodies that behave like the web servers
 * at their worst. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "box/transfer.h"

static char *root;
static struct conf conf;
static struct app app;
static struct sandbox_row sandbox;
static struct sandbox_use use;

static void make_app(void)
{
	struct err err = ERR_INIT;
	root = unit_tempdir();
	conf = (struct conf){
		.public_url = xstrdup("https://box.example/base"),
		.spool = xstrdup(root),
		.data_dir = xasprintf("%s/data", root),
		.state_db = xasprintf("%s/state.db", root),
		.max_upload = 1 << 20,
		.url_ttl = 60,
	};
	app = (struct app){.conf = &conf};
	ck_assert_int_ge(sodium_init(), 0);
	ck_ok(spool_open(&app.spool, &conf, &err), err);
	app.db = db_open(conf.state_db, &err);
	ck_ok(app.db != NULL, err);
	sign_key_from_text(&app.link_key, "a key for tests");

	sandbox = (struct sandbox_row){.principal = xstrdup("owner"),
				       .name = xstrdup("box"),
				       .state = SANDBOX_LIVE,
				       .template = xstrdup("base"),
				       .network = xstrdup("loopback"),
				       .created_at = clock_wall_ms(),
				       .last_used_at = clock_wall_ms()};
	id_make(sandbox.id);
	memcpy(sandbox.files_id, sandbox.id, sizeof(sandbox.id));
	ck_ok(row_sandbox_insert(app.db, &sandbox, &err) == 1, err);
	ck_ok(spool_make_files(&app.spool, sandbox.files_id, &err), err);
	use = (struct sandbox_use)SANDBOX_USE_INIT;
	use.workspace_fd = spool_workspace(&app.spool, sandbox.files_id, &err);
	use.incoming_fd = spool_incoming(&app.spool, sandbox.files_id, &err);
	ck_ok(use.workspace_fd >= 0 && use.incoming_fd >= 0, err);
}

static void remove_app(void)
{
	close(use.workspace_fd);
	close(use.incoming_fd);
	sandbox_row_finish(&sandbox);
	db_close(app.db);
	spool_close(&app.spool);
	free(conf.public_url);
	free(conf.spool);
	free(conf.data_dir);
	free(conf.state_db);
	unit_tempdir_remove(root);
}

/* A new link; returns the token in its URL, to be freed. */
static char *make_link(enum link_op op, const char *path, int64_t size)
{
	struct err err = ERR_INIT;
	struct transfer_link link;
	ck_ok(transfer_make_link(&app, &sandbox, op, path, size, 0, &link, &err), err);
	const char *start = op == LINK_PUT ? "https://box.example/base/files/put/"
					   : "https://box.example/base/files/get/";
	ck_assert_int_eq(strncmp(link.url, start, strlen(start)), 0);
	char *token = xstrdup(link.url + strlen(start));
	ck_assert_uint_eq(strlen(token), SIGN_TOKEN_LEN);
	free(link.url);
	return token;
}

/* What opening a token gives: ERR_NONE and the rows, or the code. */
static enum err_code open_token(const char *token, enum link_op op, struct link_row *link)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_LINK_ROW own = {0};
	if (!transfer_open_link(&app, token, op, link == NULL ? &own : link, &row, &err))
		return err.code;
	ck_assert_str_eq(row.id, sandbox.id);
	return ERR_NONE;
}

/* A body of `size` bytes in pieces of at most 1000, that breaks off after `breaks` of them. */
struct fake {
	int64_t size, breaks, at;
};

static ssize_t fake_read(void *ctx, void *data, size_t len)
{
	struct fake *fake = ctx;
	if (fake->breaks >= 0 && fake->at >= fake->breaks)
		return -1;
	int64_t end = fake->breaks >= 0 ? fake->breaks : fake->size;
	int64_t n = end - fake->at < 1000 ? end - fake->at : 1000;
	n = n < (int64_t)len ? n : (int64_t)len;
	for (int64_t i = 0; i < n; i++)
		((char *)data)[i] = (char)('a' + (fake->at + i) % 26);
	fake->at += n;
	return n;
}

static void fake_sha256(int64_t size, unsigned char out[static 32])
{
	struct fake fake = {.size = size, .breaks = -1};
	crypto_hash_sha256_state state;
	crypto_hash_sha256_init(&state);
	unsigned char piece[1000];
	for (ssize_t n; (n = fake_read(&fake, piece, sizeof(piece))) > 0;)
		crypto_hash_sha256_update(&state, piece, (size_t)n);
	crypto_hash_sha256_final(&state, out);
}

/* Nothing of a failed upload may be seen, inside or beside the workspace. */
static void ck_nothing_stored(void)
{
	for (int i = 0; i < 2; i++) {
		int fd = fs_open_beneath(i == 0 ? use.workspace_fd : use.incoming_fd, ".",
					 O_RDONLY | O_DIRECTORY, 0);
		DIR *dir = fdopendir(fd);
		int count = 0;
		while (readdir(dir) != NULL)
			count++;
		closedir(dir);
		ck_assert_int_eq(count, 2);
	}
}

/* --- links ------------------------------------------------------------------------------- */

TEST(a_link_opens_for_its_operation_only_and_a_forged_one_not_at_all)
{
	make_app();
	AUTO_FREE char *token = make_link(LINK_PUT, "a", -1);
	AUTO_LINK_ROW link = {0};
	ck_assert_int_eq(open_token(token, LINK_PUT, &link), ERR_NONE);
	ck_assert_str_eq(link.path, "a");
	ck_assert_int_eq(link.max_bytes, 1 << 20);
	ck_assert_int_eq(open_token(token, LINK_GET, NULL), ERR_INVALID);
	token[3] = token[3] == 'A' ? 'B' : 'A';
	ck_assert_int_eq(open_token(token, LINK_PUT, NULL), ERR_DENIED);
	ck_assert_int_eq(open_token("", LINK_PUT, NULL), ERR_DENIED);

	char unknown[SIGN_TOKEN_LEN + 1], id[ID_LEN + 1];
	id_make(id);
	sign_link(&app.link_key, id, clock_wall_ms() + 60000, unknown);
	ck_assert_int_eq(open_token(unknown, LINK_PUT, NULL), ERR_NOT_FOUND);
	remove_app();
}
TEST_END

TEST(an_expired_link_and_one_of_a_removed_sandbox_are_gone)
{
	make_app();
	char expired[SIGN_TOKEN_LEN + 1], id[ID_LEN + 1];
	id_make(id);
	sign_link(&app.link_key, id, clock_wall_ms() - 1, expired);
	ck_assert_int_eq(open_token(expired, LINK_GET, NULL), ERR_GONE);

	AUTO_FREE char *token = make_link(LINK_GET, "a", -1);
	struct err err = ERR_INIT;
	ck_ok(row_sandbox_move(app.db, sandbox.id, SANDBOX_LIVE, SANDBOX_GONE, clock_wall_ms(),
			       &err) == 1,
	      err);
	ck_assert_int_eq(open_token(token, LINK_GET, NULL), ERR_GONE);
	struct transfer_link link;
	ck_assert(!transfer_make_link(&app, &sandbox, LINK_PUT, "a", -1, 0, &link, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	remove_app();
}
TEST_END

TEST(a_promise_over_the_limit_makes_no_link)
{
	make_app();
	struct err err = ERR_INIT;
	struct transfer_link link;
	ck_assert(
		!transfer_make_link(&app, &sandbox, LINK_PUT, "a", (1 << 20) + 1, 0, &link, &err));
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	remove_app();
}
TEST_END

/* --- upload ------------------------------------------------------------------------------ */

/* digest: 0 none, 1 right, 2 wrong. */
static const struct upload {
	const char *what;
	int64_t size, breaks, length, promised;
	int digest;
	enum err_code code;
	const char *words;
} uploads[] = {
	{"length", 100000, -1, 100000, -1, 0, ERR_NONE, ""},
	{"promise", 100000, -1, -1, 100000, 0, ERR_NONE, ""},
	{"digest", 100000, -1, -1, -1, 1, ERR_NONE, ""},
	{"all three", 100000, -1, 100000, 100000, 1, ERR_NONE, ""},
	{"empty, promise", 0, -1, 0, 0, 0, ERR_NONE, ""},
	{"empty, digest", 0, -1, 0, -1, 1, ERR_NONE, ""},
	{"at the limit", 1 << 20, -1, 1 << 20, -1, 0, ERR_NONE, ""},
	{"nothing tells", 100, -1, -1, -1, 0, ERR_LENGTH, "nothing tells the size"},
	{"empty", 0, -1, 0, -1, 0, ERR_LENGTH, "the body is empty"},
	{"ends early", 5000, -1, 6000, -1, 0, ERR_INVALID, "5000 bytes came of 6000"},
	{"ends early, promise", 5000, -1, -1, 6000, 0, ERR_INVALID, "ended early"},
	{"emptied by the server", 0, -1, 0, 6000, 0, ERR_INVALID, "Content-Length is 0"},
	{"breaks off", 5000, 3000, 5000, -1, 0, ERR_INVALID, "broke off: 3000 bytes"},
	{"breaks off, digest", 5000, 3000, -1, -1, 1, ERR_INVALID, "broke off after 3000"},
	{"breaks off at once", 5000, 0, 5000, -1, 0, ERR_INVALID, "broke off"},
	{"too long", 7000, -1, -1, 6000, 0, ERR_INVALID, "is too long"},
	{"another length", 6000, -1, 6000, 7000, 0, ERR_INVALID, "made for 7000"},
	{"wrong digest", 5000, -1, 5000, -1, 2, ERR_INVALID, "SHA-256"},
	{"cut, digest", 4000, -1, -1, -1, 2, ERR_INVALID, "SHA-256"},
	{"announced too large", 10, -1, (1 << 20) + 1, -1, 0, ERR_TOO_LARGE, "1048577"},
	{"turns out too large", (1 << 20) + 1, -1, -1, -1, 1, ERR_TOO_LARGE, "over the limit"},
};

static bool upload(const struct upload *up, const struct link_row *link, struct transfer_done *done,
		   struct fake *fake, struct err *err)
{
	*fake = (struct fake){.size = up->size, .breaks = up->breaks};
	struct transfer_body body = {.read = fake_read,
				     .ctx = fake,
				     .length = up->length,
				     .promised = up->promised,
				     .max_bytes = link->max_bytes,
				     .has_sha256 = up->digest != 0};
	if (up->digest != 0)
		fake_sha256(up->breaks >= 0 ? 5000 : up->size, body.sha256);
	body.sha256[0] ^= up->digest == 2;
	return transfer_receive(&app, &use, link, "new/dir/file", &body, done, err);
}

TEST(an_upload_is_stored_whole_or_not_at_all)
{
	for (size_t i = 0; i < ARRAY_LEN(uploads); i++) {
		const struct upload *up = &uploads[i];
		make_app();
		AUTO_FREE char *token = make_link(LINK_PUT, "new/dir/file", -1);
		AUTO_LINK_ROW link = {0};
		ck_assert_int_eq(open_token(token, LINK_PUT, &link), ERR_NONE);
		struct err err = ERR_INIT;
		struct transfer_done done;
		struct fake fake;
		bool ok = upload(up, &link, &done, &fake, &err);
		ck_assert_msg(err.code == up->code && strstr(err.msg, up->words) != NULL,
			      "%s: %s %s", up->what, err_name(err.code), err.msg);
		if (!ok) {
			ck_nothing_stored();
			/* The link is still good, and the same file goes through it. */
			ck_assert_int_eq(open_token(token, LINK_PUT, NULL), ERR_NONE);
			ck_ok(upload(&uploads[0], &link, &done, &fake, &err), err);
		}
		struct stat st;
		AUTO_FD fd = files_open(&use, "new/dir/file", &st, &err);
		ck_ok(fd >= 0, err);
		ck_assert_int_eq(st.st_size, ok ? up->size : uploads[0].size);
		ck_assert_int_eq(done.bytes, st.st_size);
		unsigned char digest[32];
		char hex[65];
		fake_sha256(st.st_size, digest);
		sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
		ck_assert_str_eq(done.sha256, hex);
		ck_assert_int_eq(open_token(token, LINK_PUT, NULL), ERR_GONE);
		remove_app();
	}
}
TEST_END

TEST(what_can_be_refused_early_is_refused_before_a_byte_is_read)
{
	make_app();
	AUTO_FREE char *token = make_link(LINK_PUT, "new/dir/file", -1);
	AUTO_LINK_ROW link = {0};
	ck_assert_int_eq(open_token(token, LINK_PUT, &link), ERR_NONE);
	struct transfer_done done;
	struct fake fake;
	struct err err = ERR_INIT;
	ck_assert(!upload(&(struct upload){"", 10, -1, 2 << 20, -1, 0, 0, ""}, &link, &done, &fake,
			  &err));
	ck_assert_int_eq(fake.at, 0);
	conf.min_free = INT64_MAX;
	ck_assert(!upload(&uploads[0], &link, &done, &fake, &err));
	ck_assert_int_eq(err.code, ERR_QUOTA);
	ck_assert_int_eq(fake.at, 0);
	conf.min_free = 0;
	ck_ok(files_write(&use, "new", "in the way", 10, &err), err);
	ck_assert(!upload(&uploads[0], &link, &done, &fake, &err));
	ck_assert_int_eq(err.code, ERR_CONFLICT);
	ck_assert_int_eq(fake.at, 0);
	remove_app();
}
TEST_END

/* A body during which another upload through the same link completes. */
struct rival {
	struct fake fake;
	const struct link_row *link;
	bool done;
};

static ssize_t rival_read(void *ctx, void *data, size_t len)
{
	struct rival *rival = ctx;
	struct err err = ERR_INIT;
	struct transfer_done done;
	struct fake fake;
	if (!rival->done)
		ck_ok(upload(&uploads[0], rival->link, &done, &fake, &err), err);
	rival->done = true;
	return fake_read(&rival->fake, data, len);
}

TEST(of_two_uploads_at_once_only_the_first_to_complete_counts)
{
	make_app();
	AUTO_FREE char *token = make_link(LINK_PUT, "new/dir/file", -1);
	AUTO_LINK_ROW link = {0};
	ck_assert_int_eq(open_token(token, LINK_PUT, &link), ERR_NONE);
	struct rival rival = {.fake = {.size = 10, .breaks = -1}, .link = &link};
	struct transfer_body body = {
		.read = rival_read, .ctx = &rival, .length = 10, .promised = -1, .max_bytes = 100};
	struct transfer_done done;
	struct err err = ERR_INIT;
	ck_assert(!transfer_receive(&app, &use, &link, "new/dir/file", &body, &done, &err));
	ck_assert_int_eq(err.code, ERR_GONE);
	struct stat st;
	AUTO_FD fd = files_open(&use, "new/dir/file", &st, &err);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(st.st_size, uploads[0].size);
	remove_app();
}
TEST_END

/* A body at the end of which something takes the place of the target. */
static ssize_t blocking_read(void *ctx, void *data, size_t len)
{
	ssize_t n = fake_read(ctx, data, len);
	if (n == 0)
		ck_assert_int_eq(mkdirat(use.workspace_fd, "target", 0755), 0);
	return n;
}

TEST(a_failed_publication_gives_the_link_back)
{
	make_app();
	AUTO_FREE char *token = make_link(LINK_PUT, "target", -1);
	AUTO_LINK_ROW link = {0};
	ck_assert_int_eq(open_token(token, LINK_PUT, &link), ERR_NONE);
	struct fake fake = {.size = 10, .breaks = -1};
	struct transfer_body body = {.read = blocking_read,
				     .ctx = &fake,
				     .length = 10,
				     .promised = -1,
				     .max_bytes = 100};
	struct transfer_done done;
	struct err err = ERR_INIT;
	ck_assert(!transfer_receive(&app, &use, &link, "target", &body, &done, &err));
	ck_assert_int_eq(err.code, ERR_CONFLICT);
	ck_assert_int_eq(unlinkat(use.workspace_fd, "target", AT_REMOVEDIR), 0);
	ck_nothing_stored();
	ck_assert_int_eq(open_token(token, LINK_PUT, NULL), ERR_NONE);
	remove_app();
}
TEST_END

/* --- download ---------------------------------------------------------------------------- */

/* Counts what is sent; fails at the n'th byte, or does something there. */
struct pipe_end {
	int64_t bytes, fail_at;
	int begun;
	void (*meanwhile)(void);
};

static bool pipe_begin(void *ctx)
{
	struct pipe_end *end = ctx;
	end->begun++;
	return true;
}

static bool pipe_write(void *ctx, const void *data, size_t len)
{
	struct pipe_end *end = ctx;
	for (size_t i = 0; i < len; i += 997)
		ck_assert_int_eq(((const char *)data)[i], 'a' + (end->bytes + (int64_t)i) % 26);
	end->bytes += (int64_t)len;
	if (end->meanwhile != NULL)
		end->meanwhile();
	return end->fail_at < 0 || end->bytes <= end->fail_at;
}

#define BIG (200 * 1000)

/* Stores a file of `size` bytes, makes a link to it and opens both. */
static int open_download(int64_t size, char **token, struct link_row *link, struct stat *st)
{
	struct err err = ERR_INIT;
	struct fake fake = {.size = size, .breaks = -1};
	struct transfer_body body = {.read = fake_read,
				     .ctx = &fake,
				     .length = size,
				     .promised = size,
				     .max_bytes = BIG};
	struct transfer_done done;
	ck_ok(transfer_receive(&app, &use, NULL, "file", &body, &done, &err), err);
	*token = make_link(LINK_GET, "file", -1);
	ck_assert_int_eq(open_token(*token, LINK_GET, link), ERR_NONE);
	int fd = files_open(&use, "file", st, &err);
	ck_ok(fd >= 0, err);
	return fd;
}

TEST(a_download_spends_its_link_once)
{
	static const int64_t sizes[] = {0, 1, 65536, 65537, 131072, BIG};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		make_app();
		AUTO_FREE char *token = NULL;
		AUTO_LINK_ROW link = {0};
		struct stat st;
		AUTO_FD fd = open_download(sizes[i], &token, &link, &st);
		struct err err = ERR_INIT;
		struct pipe_end end = {.fail_at = -1};
		const struct transfer_sink sink = {pipe_begin, pipe_write, &end};
		ck_ok(transfer_send(&app, &link, fd, &st, 0, sizes[i], &sink, &err), err);
		ck_assert_int_eq(end.bytes, sizes[i]);
		ck_assert_int_eq(end.begun, 1);
		ck_assert_int_eq(open_token(token, LINK_GET, NULL), ERR_GONE);

		/* Somebody who opened the link before never gets the last byte; of a small file
		 * nothing at all, so that the refusal can be answered. */
		end = (struct pipe_end){.fail_at = -1};
		ck_assert(!transfer_send(&app, &link, fd, &st, 0, sizes[i], &sink, &err));
		ck_assert_int_eq(err.code, ERR_GONE);
		ck_assert(end.bytes == 0 || end.bytes < sizes[i]);
		ck_assert_int_eq(end.begun, sizes[i] > 65536);
		remove_app();
	}
}
TEST_END

TEST(a_part_without_the_last_byte_and_a_broken_download_leave_the_link_good)
{
	make_app();
	AUTO_FREE char *token = NULL;
	AUTO_LINK_ROW link = {0};
	struct stat st;
	AUTO_FD fd = open_download(BIG, &token, &link, &st);
	struct err err = ERR_INIT;
	struct pipe_end end = {.fail_at = -1};
	const struct transfer_sink sink = {pipe_begin, pipe_write, &end};
	ck_ok(transfer_send(&app, &link, fd, &st, 0, BIG - 1, &sink, &err), err);
	ck_assert_int_eq(open_token(token, LINK_GET, NULL), ERR_NONE);
	static const int64_t breaks[] = {0, 70000, BIG - 1};
	for (size_t i = 0; i < ARRAY_LEN(breaks); i++) {
		end = (struct pipe_end){.fail_at = breaks[i]};
		ck_assert(!transfer_send(&app, &link, fd, &st, 0, BIG, &sink, &err));
		ck_assert_int_eq(err.code, ERR_LOST);
		ck_assert_int_eq(open_token(token, LINK_GET, NULL), ERR_NONE);
	}
	/* Resumed: the rest alone spends it. */
	end = (struct pipe_end){.bytes = 70000, .fail_at = -1};
	ck_ok(transfer_send(&app, &link, fd, &st, 70000, BIG - 70000, &sink, &err), err);
	ck_assert_int_eq(end.bytes, BIG);
	ck_assert_int_eq(open_token(token, LINK_GET, NULL), ERR_GONE);
	remove_app();
}
TEST_END

static void grow(void)
{
	AUTO_FD fd = openat(use.workspace_fd, "file", O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "x", 1), 1);
}

static void shrink(void)
{
	AUTO_FD fd = openat(use.workspace_fd, "file", O_WRONLY | O_TRUNC);
	ck_assert_int_ge(fd, 0);
}

static void rewrite(void)
{
	AUTO_FD fd = openat(use.workspace_fd, "file", O_WRONLY);
	clock_sleep_ms(20); /* beyond the clock tick of the file's times */
	ck_assert_int_eq(pwrite(fd, "X", 1, BIG - 1), 1);
}

TEST(a_file_that_changes_while_it_is_sent_cuts_the_download)
{
	static void (*const changes[])(void) = {grow, shrink, rewrite};
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		make_app();
		AUTO_FREE char *token = NULL;
		AUTO_LINK_ROW link = {0};
		struct stat st;
		AUTO_FD fd = open_download(BIG, &token, &link, &st);
		struct err err = ERR_INIT;
		struct pipe_end end = {.fail_at = -1, .meanwhile = changes[i]};
		const struct transfer_sink sink = {pipe_begin, pipe_write, &end};
		ck_assert(!transfer_send(&app, &link, fd, &st, 0, BIG, &sink, &err));
		ck_assert_int_eq(err.code, ERR_CONFLICT);
		ck_assert_int_eq(end.bytes, 65536);
		ck_assert_int_eq(open_token(token, LINK_GET, NULL), ERR_NONE);
		remove_app();
	}
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_link_opens_for_its_operation_only_and_a_forged_one_not_at_all,
		an_expired_link_and_one_of_a_removed_sandbox_are_gone,
		a_promise_over_the_limit_makes_no_link,
		an_upload_is_stored_whole_or_not_at_all,
		what_can_be_refused_early_is_refused_before_a_byte_is_read,
		of_two_uploads_at_once_only_the_first_to_complete_counts,
		a_failed_publication_gives_the_link_back,
		a_download_spends_its_link_once,
		a_part_without_the_last_byte_and_a_broken_download_leave_the_link_good,
		a_file_that_changes_while_it_is_sent_cuts_the_download,
	};
	return unit_run("transfer", tests, ARRAY_LEN(tests));
}
