/*
 * The rules about what does not fit together: directories and rows that a process left behind when
 * it died in the middle of something. What is found in a comparison of whole directories with whole
 * tables may be in the making or on its way out, so each thing is looked at once more before
 * anything is done about it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "box/incarnation.h"
#include "box/reap_census.h"
#include "box/sandbox_end.h"
#include "store/row_gone.h"

/* --- rows that left LIVE, with something of them there -------------------------------------- */

/* The files of a row that is gone are nobody's unless a later incarnation took them over. Then it
 * did so in the transaction that moved this row, so what is nobody's now stays so. */
static int are_nobodys(struct app *app, const struct sandbox_row *row, struct err *err)
{
	if (row->state != SANDBOX_GONE)
		return 0;
	int rc = row_gone_files_in_use(app->db, row->files_id, err);
	return rc < 0 ? -1 : !rc;
}

static void finish_ended(struct reap *reap, const char *id, bool has_run, bool has_files)
{
	struct err err = ERR_INIT;
	struct app *app = reap->app;
	AUTO_SANDBOX_ROW row = {0};
	int rc = row_sandbox_any(app->db, id, &row, &err);
	int nobodys = rc == 1 && has_files ? are_nobodys(app, &row, &err) : 0;
	if (rc < 0 || nobodys < 0)
		reap_failed(reap, id, &err);
	if (rc != 1 || nobodys < 0 || (row.state != SANDBOX_GONE && row.state != SANDBOX_KEPT) ||
	    (!has_run && nobodys == 0))
		return;
	if (reap_act(reap, &reap->report->orphans_removed, "finish_removal",
		     "id=%s name=%s holder=%s files=%s why=\"it was destroyed, and what removed it "
		     "died before it was through\"",
		     row.id, row.name, has_run ? "yes" : "no", nobodys == 1 ? "yes" : "no") &&
	    !reap_finish(reap, &row, nobodys == 1, &err))
		reap_failed(reap, id, &err);
}

/* Files of rows that are gone and of no others; in their order. */
static void list_owned(const struct census *census, struct id_list *owned)
{
	for (size_t i = 0; i < census->row_count; i++)
		if (census->rows[i].state != SANDBOX_GONE)
			id_list_add(owned, census->rows[i].files_id);
	id_list_sort(owned);
}

void reap_half_ended(struct reap *reap)
{
	AUTO_CENSUS census = {.row_count = 0};
	AUTO_ID_LIST owned = {.ids = BUF_INIT};
	if (!census_take(reap, "half_ended", &census))
		return;
	list_owned(&census, &owned);
	for (size_t i = 0; i < census.row_count && !reap_is_late(reap); i++) {
		const struct census_sandbox *row = &census.rows[i];
		if (!id_is_valid(row->id) || !id_is_valid(row->files_id))
			reap_leave(reap, "row", "id=%s why=\"its row is damaged\"", row->id);
		if (row->state != SANDBOX_GONE && row->state != SANDBOX_KEPT)
			continue;
		bool has_run = id_list_has(&census.runs, row->id);
		bool has_files = row->state == SANDBOX_GONE &&
				 id_list_has(&census.files, row->files_id) &&
				 !id_list_has(&owned, row->files_id);
		if (has_run || has_files)
			finish_ended(reap, row->id, has_run, has_files);
	}
}

/* --- run/<id> without a row ----------------------------------------------------------------- */

/* Nobody enters without a row; who is still in is left to come to the end. */
static void end_run(struct reap *reap, const char *id)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	int rc = row_sandbox_any(reap->app->db, id, &row, &err);
	if (rc < 0)
		reap_failed(reap, id, &err);
	if (rc != 0)
		return;
	struct stat st;
	if (fstatat(reap->app->spool.run_fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISDIR(st.st_mode)) {
		reap_leave(reap, "run", "id=%s why=\"it is no directory\"", id);
		return;
	}
	if (incarnation_is_used(reap->app, id)) {
		reap_leave(reap, "run", "id=%s why=\"no sandbox has this id, but it is in use\"",
			   id);
		return;
	}
	if (!reap_act(reap, &reap->report->orphans_removed, "end_holder",
		      "id=%s why=\"no sandbox has this id\"", id))
		return;
	reap_step(reap, "end_holder");
	/* Ending asks for the id and the levels of the network, which only a start needs. */
	struct sandbox_row nobody = {.network = (char *)"none"};
	memcpy(nobody.id, id, sizeof(nobody.id));
	memcpy(nobody.files_id, id, sizeof(nobody.files_id));
	if (!incarnation_end(reap->app, &nobody, NULL, &err))
		reap_failed(reap, id, &err);
}

void reap_orphan_runs(struct reap *reap)
{
	AUTO_CENSUS census = {.row_count = 0};
	if (!census_take(reap, "orphan_runs", &census))
		return;
	for (size_t i = 0; i < id_list_count(&census.runs) && !reap_is_late(reap); i++)
		if (!id_list_has(&census.row_ids, id_list_at(&census.runs, i)))
			end_run(reap, id_list_at(&census.runs, i));
}

/* --- rows without data/<id> ----------------------------------------------------------------- */

/* app_open has made sure that this data directory is the one of this database. */
static bool has_files(const struct reap *reap, const char *files_id)
{
	struct stat st;
	return fstatat(reap->app->spool.data_fd, files_id, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

static bool act_on_missing(struct reap *reap, const struct sandbox_row *row)
{
	return reap_act(reap, &reap->report->repaired, "remove",
			"id=%s name=%s why=\"its files are not on the disk any more\"", row->id,
			row->name);
}

static void end_live(struct reap *reap, const struct sandbox_row *seen)
{
	struct err err = ERR_INIT;
	struct app *app = reap->app;
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	enum sandbox_held held = reap->options->dry_run ? sandbox_peek(app, seen, &hold, &err)
							: sandbox_hold(app, seen, &hold, &err);
	int rc = held == SANDBOX_HELD_NONE ? -1 : 0;
	if (held == SANDBOX_HELD && !has_files(reap, hold.row.files_id) &&
	    act_on_missing(reap, &hold.row)) {
		reap_step(reap, "move_row");
		rc = sandbox_end_row(app, &hold, &err);
	}
	if (rc < 0 || (rc == 1 && !reap_finish(reap, &hold.row, false, &err)))
		reap_failed(reap, seen->id, &err);
}

static void end_kept(struct reap *reap, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	if (!act_on_missing(reap, row))
		return;
	reap_step(reap, "move_row");
	if (row_sandbox_move(reap->app->db, row->id, SANDBOX_KEPT, SANDBOX_GONE, reap->timeline.now,
			     &err) < 0)
		reap_failed(reap, row->id, &err);
}

static void end_missing(struct reap *reap, const char *id)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	if (row_sandbox_any(reap->app->db, id, &row, &err) < 0)
		reap_failed(reap, id, &err);
	else if (row.state == SANDBOX_NONE || has_files(reap, row.files_id))
		return;
	else if (row.state == SANDBOX_LIVE)
		end_live(reap, &row);
	else if (row.state == SANDBOX_KEPT)
		end_kept(reap, &row);
}

void reap_missing_files(struct reap *reap)
{
	AUTO_CENSUS census = {.row_count = 0};
	if (!census_take(reap, "missing_files", &census))
		return;
	for (size_t i = 0; i < census.row_count && !reap_is_late(reap); i++) {
		const struct census_sandbox *row = &census.rows[i];
		if ((row->state == SANDBOX_LIVE || row->state == SANDBOX_KEPT) &&
		    !id_list_has(&census.files, row->files_id))
			end_missing(reap, row->id);
	}
}
