/*
 * The rules about files that nobody owns: data/<id> without a row, and uploads that were broken
 * off. Whatever was in a workspace may be somebody's work: it is given back to its owner, or left
 * alone. Only what holds nothing is removed, and never with what is below it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "box/about.h"
#include "box/incarnation.h"
#include "box/reap_census.h"
#include "box/sandbox.h"
#include "box/sandbox_end.h"
#include "store/row_gone.h"

#define EMPTY_AGE_MS   (60 * 60 * 1000LL)          /* no create takes as long */
#define UPLOAD_AGE_MS  (60 * 60 * 1000LL)          /* since its last byte */
#define UPLOAD_LOOK_MS (2 * 24 * 60 * 60 * 1000LL) /* who was used before that was looked at */
#define UPLOAD_SLICE   500  /* of one sandbox in a pass: it is held for so long */
#define COUNT_MAX      1000 /* of the entries that are told */
#define SUFFIX_LEN     4    /* of a name that was taken */
#define NAME_ATTEMPTS  16

/* Its entries, up to COUNT_MAX; 0 when it is missing, -1 when it cannot be looked at. */
static int count_entries(int dirfd, const char *name)
{
	int count = 0;
	AUTO_DIR *dir = fs_open_listing(dirfd, name);
	if (dir == NULL)
		return errno == ENOENT ? 0 : -1;
	for (const struct dirent *entry; count < COUNT_MAX && (entry = readdir(dir)) != NULL;)
		count += !fs_is_dots(entry->d_name);
	return count;
}

/* --- data/<id> without a row ---------------------------------------------------------------- */

static int64_t age_of(const struct reap *reap, const struct stat *st)
{
	return timeline_age(&reap->timeline,
			    (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000);
}

/* A create that died before its row. rmdir takes nothing that holds something, whoever puts it
 * there meanwhile. */
static void remove_empty(struct reap *reap, const char *id, int files_fd)
{
	struct err err = ERR_INIT;
	struct stat st;
	if (fstat(files_fd, &st) != 0 || age_of(reap, &st) < EMPTY_AGE_MS)
		return;
	if (!reap_act(reap, &reap->report->orphans_removed, "remove_empty",
		      "files_id=%s age_s=%lld why=\"a sandbox was begun here and never made\"", id,
		      (long long)(age_of(reap, &st) / 1000)))
		return;
	reap_step(reap, "remove_empty");
	if ((unlinkat(files_fd, "workspace", AT_REMOVEDIR) == 0 || errno == ENOENT) &&
	    (unlinkat(files_fd, "incoming", AT_REMOVEDIR) == 0 || errno == ENOENT) &&
	    (unlinkat(files_fd, ABOUT_FILE, 0) == 0 || errno == ENOENT) &&
	    unlinkat(reap->app->spool.data_fd, id, AT_REMOVEDIR) == 0)
		return;
	err_sys(&err, "remove empty files");
	reap_failed(reap, id, &err);
}

/* The name as it was, or one beside it. */
static void pick_name(const char *wanted, int attempt, char name[static NAME_MAX_LEN + 1])
{
	char fresh[ID_LEN + 1];
	snprintf(name, NAME_MAX_LEN + 1, "%s", wanted);
	if (attempt == 0)
		return;
	id_make(fresh);
	snprintf(name, NAME_MAX_LEN + 1, "%.*s-%.*s", NAME_MAX_LEN - 1 - SUFFIX_LEN, wanted,
		 SUFFIX_LEN, fresh);
}

/* A free name, inside the transaction; false with err. */
static bool find_name(struct app *app, const struct about *about,
		      char name[static NAME_MAX_LEN + 1], struct err *err)
{
	for (int i = 0; i < NAME_ATTEMPTS; i++) {
		AUTO_SANDBOX_ROW found = {0};
		pick_name(about->name, i, name);
		int rc = row_sandbox_by_name(app->db, about->principal, name, &found, err);
		if (rc <= 0)
			return rc == 0;
	}
	return err_set(err, ERR_BUSY, "no name beside %s is free", about->name);
}

/* The row of files that came without one: destroyed and kept, as of now. Its id is that of the
 * files: should somebody be in the middle of making a sandbox of them, only one of the two rows can
 * be. */
static int insert_kept(struct reap *reap, const char *id, const struct about *about,
		       char name[static NAME_MAX_LEN + 1], struct err *err)
{
	struct app *app = reap->app;
	AUTO_TX tx = TX_INIT;
	AUTO_SANDBOX_ROW other = {0};
	if (!db_begin(app->db, &tx, err))
		return -1;
	int rc = row_gone_files_in_use(app->db, id, err);
	if (rc == 0)
		rc = row_sandbox_any(app->db, id, &other, err);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (!find_name(app, about, name, err))
		return -1;
	int64_t now = reap->timeline.now;
	struct sandbox_row row = {
		.principal = about->principal,
		.name = name,
		.state = SANDBOX_KEPT,
		.template = (char *)SANDBOX_TEMPLATE_BASE,
		.network = (char *)"loopback",
		.created_at = about->created_at > 0 ? about->created_at : now,
		.last_used_at = now,
		.ended_at = now,
	};
	memcpy(row.id, id, sizeof(row.id));
	memcpy(row.files_id, id, sizeof(row.files_id));
	rc = row_sandbox_insert(app->db, &row, err);
	return rc == 1 && !db_commit(&tx, err) ? -1 : rc;
}

static void adopt(struct reap *reap, const char *id, const struct about *about, int entries)
{
	struct err err = ERR_INIT;
	char name[NAME_MAX_LEN + 1];
	if (!reap_act(
		    reap, &reap->report->orphans_adopted, "adopt",
		    "files_id=%s name=%s entries=%d%s why=\"no sandbox has these files; they wait "
		    "for the next one of that name, or of NAME-xxxx where the name is taken\"",
		    id, about->name, entries, entries == COUNT_MAX ? "+" : ""))
		return;
	reap_step(reap, "adopt");
	if (insert_kept(reap, id, about, name, &err) < 0)
		reap_failed(reap, id, &err);
}

static void look_at_files(struct reap *reap, const char *id)
{
	AUTO_ABOUT about = {.principal = NULL};
	AUTO_FD files = openat(reap->app->spool.data_fd, id,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (files < 0) {
		if (errno != ENOENT)
			reap_leave(reap, "files",
				   "files_id=%s why=\"no sandbox has them, and they are no "
				   "directory that can be opened\"",
				   id);
		return;
	}
	int entries = count_entries(files, "workspace");
	int uploads = count_entries(files, "incoming");
	if (entries == 0 && uploads == 0)
		remove_empty(reap, id, files);
	else if (entries > 0 && about_read(files, &about))
		adopt(reap, id, &about, entries);
	else
		reap_leave(reap, "files",
			   "files_id=%s entries=%d%s uploads=%d why=\"no sandbox has them, and "
			   "nothing tells whose they are\"",
			   id, entries, entries == COUNT_MAX ? "+" : "", uploads);
}

/* Rows are read after the directories, so whatever has a row by now is not here. What runs in the
 * files, or is just being ended, comes first. */
void reap_orphan_files(struct reap *reap)
{
	AUTO_CENSUS census = {.row_count = 0};
	if (!census_take(reap, "orphan_files", &census))
		return;
	for (size_t i = 0; i < id_list_count(&census.files) && !reap_is_late(reap); i++) {
		const char *id = id_list_at(&census.files, i);
		if (!id_list_has(&census.row_files, id) && !id_list_has(&census.row_ids, id) &&
		    !id_list_has(&census.runs, id))
			look_at_files(reap, id);
	}
}

/* --- data/<id>/incoming --------------------------------------------------------------------- */

typedef void upload_visit(struct reap *reap, const struct sandbox_row *row, int dirfd,
			  const char *name, const struct stat *st);

/* Calls visit for the first old uploads, at most max; returns how many there were. */
static int each_old_upload(struct reap *reap, const struct sandbox_row *row, int max,
			   upload_visit *visit)
{
	char path[ID_LEN + sizeof("/incoming")];
	snprintf(path, sizeof(path), "%s/incoming", row->files_id);
	AUTO_DIR *dir = fs_open_listing(reap->app->spool.data_fd, path);
	int count = 0;
	const struct dirent *entry;
	while (dir != NULL && count < max && (entry = readdir(dir)) != NULL) {
		struct stat st;
		if (fs_is_dots(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    age_of(reap, &st) < UPLOAD_AGE_MS)
			continue;
		count++;
		if (visit != NULL)
			visit(reap, row, dirfd(dir), entry->d_name, &st);
	}
	return count;
}

/* A rename: deleting a large file takes longer than requests may be made to wait. */
static void drop_upload(struct reap *reap, const struct sandbox_row *row, int dirfd,
			const char *name, const struct stat *st)
{
	struct err err = ERR_INIT;
	if (!reap_act(reap, &reap->report->uploads_dropped, "drop_upload",
		      "id=%s name=%s bytes=%lld age_s=%lld why=\"nobody goes on with it\"", row->id,
		      row->name, (long long)st->st_size, (long long)(age_of(reap, st) / 1000)))
		return;
	reap_step(reap, "drop_upload");
	if (!spool_drop_file(&reap->app->spool, dirfd, name, &err))
		reap_failed(reap, row->id, &err);
}

/* Whoever uploads holds the use lock shared. */
static bool drop_uploads(void *ctx, const struct sandbox_row *row)
{
	struct reap *reap = ctx;
	struct err err = ERR_INIT;
	struct app *app = reap->app;
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	if (reap_is_late(reap))
		return false;
	reap->report->looked_at++;
	if (each_old_upload(reap, row, 1, NULL) == 0)
		return true;
	enum sandbox_held held = reap->options->dry_run ? sandbox_peek(app, row, &hold, &err)
							: sandbox_hold(app, row, &hold, &err);
	if (held == SANDBOX_HELD_NONE)
		reap_failed(reap, row->id, &err);
	else if (held == SANDBOX_HELD)
		(void)each_old_upload(reap, &hold.row, UPLOAD_SLICE, drop_upload);
	return true;
}

void reap_uploads(struct reap *reap)
{
	struct err err = ERR_INIT;
	if (!row_sandbox_each_used(reap->app->db, timeline_cutoff(&reap->timeline, UPLOAD_LOOK_MS),
				   drop_uploads, reap, &err))
		reap_failed(reap, "uploads", &err);
}
