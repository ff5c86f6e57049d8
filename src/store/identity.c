/*
 * The id stands in the files spool.id of the spool and of the data directory, and in table spool.
 * A file without a row is a lost database; a row without a file is a directory that is not
 * mounted, or not the right one. So that a first start that dies in the middle is not taken for
 * either, it goes in this order:
 *
 *	1. the row, not whole, in a transaction that finds neither a row nor a file;
 *	2. data/spool.id    3. spool.id    4. the row is whole.
 *
 * Killed before 1, nothing was made. Killed after it, the row has the id and says that files may be
 * missing: the next open goes on from there. A file of the spool beside none of the data directory
 * cannot come about that way, so that is refused even then. Each file appears by a link to one that
 * is complete and on disk; its temporary name follows from the id, so the next attempt finds and
 * removes it. Steps 2 to 4 hold the write lock of the database, so nobody else does them too; they
 * come once in the life of a spool.
 */
#include "store/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"

#define FILE_NAME     SPOOL_ID_FILE
#define FILE_TEXT_LEN (ID_LEN + 1) /* the id and a newline */

enum statement { GET, ADD, SET_WHOLE };

static const char *const sql[] = {
	[GET] = "SELECT id, is_whole FROM spool",
	[ADD] = "INSERT INTO spool (one, id) VALUES (1, :id)",
	[SET_WHOLE] = "UPDATE spool SET is_whole = 1",
};

struct identity {
	char id[ID_LEN + 1];
	bool is_whole;
};

struct ids {
	char root[ID_LEN + 1]; /* "": no file */
	char data[ID_LEN + 1];
};

/* --- the row ------------------------------------------------------------------------------- */

/* 1, 0: there is none, -1 with err. */
static int read_row(struct db *db, struct identity *identity, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[GET], err);
	if (stmt == NULL)
		return -1;
	int rc = db_step(db, stmt, err);
	if (rc == 1) {
		db_column_id(stmt, 0, identity->id);
		identity->is_whole = sqlite3_column_int(stmt, 1) != 0;
	}
	return rc;
}

static bool add_row(struct db *db, const char *id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[ADD], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":id", id);
	return db_run(db, stmt, NULL, err);
}

static bool set_whole(struct db *db, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[SET_WHOLE], err);
	return stmt != NULL && db_run(db, stmt, NULL, err);
}

/* --- the files ----------------------------------------------------------------------------- */

/* id stays empty when there is no file. */
static bool read_file(int dirfd, const char *where, char id[static ID_LEN + 1], struct err *err)
{
	id[0] = '\0';
	AUTO_FD fd = openat(dirfd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return true;
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_sys(err, "open " FILE_NAME " in the %s directory", where);
	AUTO_BUF text = BUF_INIT;
	if (S_ISREG(st.st_mode) && st.st_size == FILE_TEXT_LEN &&
	    !fs_read_all(fd, FILE_TEXT_LEN, &text, err))
		return false;
	if (text.len == FILE_TEXT_LEN && text.data[ID_LEN] == '\n') {
		memcpy(id, text.data, ID_LEN);
		id[ID_LEN] = '\0';
		if (id_is_valid(id))
			return true;
	}
	id[0] = '\0';
	err_set(err, ERR_UNAVAILABLE, "the file " FILE_NAME " in the %s directory is damaged",
		where);
	return err_hint(err, "Put back the file from a backup, or copy the " FILE_NAME
			     " of the other one of SMCP_SPOOL and SMCP_DATA_DIR over it.");
}

static bool read_files(const struct spool *spool, struct ids *ids, struct err *err)
{
	return read_file(spool->root_fd, "spool", ids->root, err) &&
	       read_file(spool->data_fd, "data", ids->data, err);
}

static bool write_temp(int dirfd, const char *temp, const char *id, struct err *err)
{
	char text[FILE_TEXT_LEN + 1];
	snprintf(text, sizeof(text), "%s\n", id);
	AUTO_FD fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "create " FILE_NAME);
	return fs_write_all(fd, text, FILE_TEXT_LEN, err) &&
	       ((fchmod(fd, 0600) == 0 && fsync(fd) == 0) || err_sys(err, "write " FILE_NAME));
}

/* A name that is taken was taken since we looked, by a first start with another database. */
static bool link_temp(int dirfd, const char *temp, struct err *err)
{
	if (linkat(dirfd, temp, dirfd, FILE_NAME, 0) == 0)
		return true;
	if (errno != EEXIST)
		return err_sys(err, "publish " FILE_NAME);
	return err_set(err, ERR_BUSY,
		       "another server makes this spool its own at the same time, with another "
		       "state database");
}

/* Under the write lock of the database. */
static bool publish(int dirfd, const char *where, const char *id, struct err *err)
{
	char temp[ID_LEN + 8], found[ID_LEN + 1];
	snprintf(temp, sizeof(temp), ".new-%s", id);
	unlinkat(dirfd, temp, 0);
	/* Looked at here and now: one directory can be both. */
	if (!read_file(dirfd, where, found, err))
		return false;
	bool ok = true;
	if (found[0] == '\0') {
		ok = write_temp(dirfd, temp, id, err) && link_temp(dirfd, temp, err);
		unlinkat(dirfd, temp, 0);
	}
	return ok && fs_sync_dir(dirfd, err);
}

/* --- what does not fit --------------------------------------------------------------------- */

#define UNCHANGED " Nothing was changed."

/* In the order in which they are looked for. */
enum misfit { FITS = 0, NEW_DB, NO_DIRS, NO_DATA, NO_ROOT, OTHER_DATA, OTHER_ROOT, OTHER_DB };

static const struct {
	const char *msg, *hint;
} misfits[] = {
	[NEW_DB] = {"the state database (SMCP_STATE_DB) is not the one that belongs to this spool: "
		    "it is new, or older than the file " FILE_NAME,
		    "Stop the server and put the right state.db back, without the -wal and -shm of "
		    "this one. Only to begin anew, and let the files in the data directory be "
		    "adopted: remove the file " FILE_NAME
		    " of both SMCP_SPOOL and SMCP_DATA_DIR (by default data/ in SMCP_SPOOL)."},
	[NO_DIRS] = {"the directories of SMCP_SPOOL and SMCP_DATA_DIR are not the ones that belong "
		     "to the state database: both lack the file " FILE_NAME,
		     "Mount the right ones, or correct SMCP_SPOOL, SMCP_DATA_DIR and "
		     "SMCP_STATE_DB. To begin anew with these directories, move the state "
		     "database away." UNCHANGED},
	[NO_DATA] = {"the data directory (SMCP_DATA_DIR, by default data/ in SMCP_SPOOL) lacks the "
		     "file " FILE_NAME ": its disk is not mounted, or it is another directory",
		     "Mount it, or correct SMCP_DATA_DIR. If these are the right files, copy "
		     "the " FILE_NAME " of SMCP_SPOOL there." UNCHANGED},
	[NO_ROOT] = {"the spool directory (SMCP_SPOOL) lacks the file " FILE_NAME
		     ": its disk is not mounted, or it is another directory",
		     "Mount it, or correct SMCP_SPOOL. If it is the right one, copy the " FILE_NAME
		     " of the data directory there." UNCHANGED},
	[OTHER_DATA] = {"the data directory (SMCP_DATA_DIR, by default data/ in SMCP_SPOOL) "
			"belongs to another spool",
			"Mount the right one, or correct SMCP_DATA_DIR. If these are the right "
			"files, copy the " FILE_NAME " of SMCP_SPOOL there." UNCHANGED},
	[OTHER_ROOT] = {"the spool directory (SMCP_SPOOL) is not the one that belongs to the state "
			"database and the data directory",
			"Mount the right one, or correct SMCP_SPOOL. If it is the right one, copy "
			"the " FILE_NAME " of the data directory there." UNCHANGED},
	[OTHER_DB] = {"the state database (SMCP_STATE_DB) is not the one that belongs to this "
		      "spool: it belongs to another one",
		      "Put the right state.db back, or correct SMCP_STATE_DB and SMCP_SPOOL. Only "
		      "to begin anew, and let the files in the data directory be adopted: move "
		      "this state.db away and remove the file " FILE_NAME
		      " of both SMCP_SPOOL and SMCP_DATA_DIR." UNCHANGED},
};

static bool refuse(enum misfit misfit, struct err *err)
{
	err_set(err, ERR_UNAVAILABLE, "%s", misfits[misfit].msg);
	return err_hint(err, "%s", misfits[misfit].hint);
}

static enum misfit find_misfit(const struct ids *ids, const char *id)
{
	bool root = strcmp(ids->root, id) == 0, data = strcmp(ids->data, id) == 0;
	bool has_root = ids->root[0] != '\0', has_data = ids->data[0] != '\0';
	if (root && data)
		return FITS;
	if (!has_root && !has_data)
		return NO_DIRS;
	if (root)
		return has_data ? OTHER_DATA : NO_DATA;
	if (data)
		return has_root ? OTHER_ROOT : NO_ROOT;
	return OTHER_DB;
}

static bool check_files(const struct spool *spool, const char *id, struct err *err)
{
	struct ids ids;
	if (!read_files(spool, &ids, err))
		return false;
	enum misfit misfit = find_misfit(&ids, id);
	return misfit == FITS || refuse(misfit, err);
}

/* --- making it ----------------------------------------------------------------------------- */

/* Step 1. Whoever comes second finds the first one's row. */
static bool make_row(const struct spool *spool, struct db *db, struct err *err)
{
	AUTO_TX tx = TX_INIT;
	struct identity identity;
	struct ids ids;
	if (!db_begin(db, &tx, err))
		return false;
	int rc = read_row(db, &identity, err);
	if (rc != 0)
		return rc == 1;
	if (!read_files(spool, &ids, err))
		return false;
	if (ids.root[0] != '\0' || ids.data[0] != '\0')
		return refuse(NEW_DB, err);
	id_make(identity.id);
	return add_row(db, identity.id, err) && db_commit(&tx, err);
}

/* Whether an attempt that was killed leaves this. */
static bool can_go_on(const struct ids *ids, const char *id)
{
	if (strcmp(ids->data, id) == 0)
		return ids->root[0] == '\0' || strcmp(ids->root, id) == 0;
	return ids->data[0] == '\0' && ids->root[0] == '\0';
}

/* Steps 2 to 4, from wherever an earlier attempt got to. */
static bool make_files(const struct spool *spool, struct db *db, struct err *err)
{
	AUTO_TX tx = TX_INIT;
	struct identity identity = {.is_whole = false};
	struct ids ids;
	if (!db_begin(db, &tx, err))
		return false;
	int rc = read_row(db, &identity, err);
	if (rc == 0)
		return err_set(err, ERR_BUSY, "the id of the spool was removed while it was made");
	if (rc < 0 || identity.is_whole)
		return rc == 1;
	if (!read_files(spool, &ids, err))
		return false;
	if (!can_go_on(&ids, identity.id))
		return refuse(find_misfit(&ids, identity.id), err);
	return publish(spool->data_fd, "data", identity.id, err) &&
	       publish(spool->root_fd, "spool", identity.id, err) &&
	       check_files(spool, identity.id, err) && set_whole(db, err) && db_commit(&tx, err);
}

int identity_is_known(const struct spool *spool, struct err *err)
{
	struct ids ids;
	if (!read_files(spool, &ids, err))
		return -1;
	return ids.root[0] != '\0' || ids.data[0] != '\0';
}

bool identity_check(const struct spool *spool, struct db *db, struct err *err)
{
	struct identity identity = {.is_whole = false};
	int rc = read_row(db, &identity, err);
	if (rc < 0)
		return false;
	if (rc == 1 && identity.is_whole)
		return check_files(spool, identity.id, err);
	return (rc == 1 || make_row(spool, db, err)) && make_files(spool, db, err) &&
	       read_row(db, &identity, err) == 1 && check_files(spool, identity.id, err);
}
