/* See reap_census.h. One readdir for each directory, one SELECT, and binary search. */
#include "box/reap_census.h"

#include <string.h>

#include "base/fs.h"

#define ENTRY (ID_LEN + 1)

size_t id_list_count(const struct id_list *list)
{
	return list->ids.len / ENTRY;
}

const char *id_list_at(const struct id_list *list, size_t i)
{
	return list->ids.data + i * ENTRY;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, ENTRY);
}

bool id_list_has(const struct id_list *list, const char *id)
{
	return list->ids.len > 0 &&
	       bsearch(id, list->ids.data, id_list_count(list), ENTRY, compare) != NULL;
}

void id_list_add(struct id_list *list, const char *id)
{
	buf_append(&list->ids, id, ENTRY);
}

void id_list_sort(struct id_list *list)
{
	if (list->ids.len > 0)
		qsort(list->ids.data, id_list_count(list), ENTRY, compare);
}

void id_list_finish(struct id_list *list)
{
	buf_finish(&list->ids);
}

bool id_list_read(struct id_list *list, int dirfd, const char *prefix, struct err *err)
{
	AUTO_DIR *dir = fs_open_listing(dirfd, ".");
	size_t skip = strlen(prefix);
	if (dir == NULL)
		return err_sys(err, "read a directory of the spool");
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (strncmp(entry->d_name, prefix, skip) == 0 && id_is_valid(entry->d_name + skip))
			id_list_add(list, entry->d_name + skip);
	id_list_sort(list);
	return true;
}

void census_finish(struct census *census)
{
	id_list_finish(&census->runs);
	id_list_finish(&census->files);
	id_list_finish(&census->row_ids);
	id_list_finish(&census->row_files);
	free(census->rows);
	*census = (struct census){.row_count = 0};
}

bool census_take(struct reap *reap, const char *name, struct census *census)
{
	struct err err = ERR_INIT;
	struct app *app = reap->app;
	if (!id_list_read(&census->runs, app->spool.run_fd, "", &err) ||
	    !id_list_read(&census->files, app->spool.data_fd, "", &err) ||
	    !row_census_sandboxes(app->db, &census->rows, &census->row_count, &err)) {
		reap_failed(reap, name, &err);
		return false;
	}
	for (size_t i = 0; i < census->row_count; i++) {
		id_list_add(&census->row_ids, census->rows[i].id);
		id_list_add(&census->row_files, census->rows[i].files_id);
	}
	id_list_sort(&census->row_ids);
	id_list_sort(&census->row_files);
	reap->report->looked_at += (int64_t)census->row_count;
	return true;
}
