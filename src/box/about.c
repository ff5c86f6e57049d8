/* See about.h. */
#include "box/about.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/id.h"
#include "base/json.h"

#define ABOUT_MAX     4096 /* ours are some 150 bytes */
#define PRINCIPAL_MAX 255

bool about_write(const struct spool *spool, const struct sandbox_row *row, struct err *err)
{
	AUTO_JSON *object = json_object_new_object();
	json_add_str(object, "principal", row->principal);
	json_add_str(object, "name", row->name);
	json_add_int(object, "created_at", row->created_at);
	size_t len;
	const char *text = json_text(object, &len);
	AUTO_FD files = fs_open_dir(spool->data_fd, row->files_id, err);
	if (files < 0)
		return false;
	/* By its own name: nobody reads it before there is a row, and a process that dies here
	 * leaves nothing that has another name. */
	AUTO_FD fd = openat(files, ABOUT_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "create %s", ABOUT_FILE);
	return fs_write_all(fd, text, len, err) &&
	       (fsync(fd) == 0 || err_sys(err, "sync %s", ABOUT_FILE));
}

void about_finish(struct about *about)
{
	free(about->principal);
	free(about->name);
	*about = (struct about){.principal = NULL};
}

/* Regular files only: whoever restored the directory may have put anything there. */
static bool read_text(int files_fd, struct buf *text)
{
	struct err err = ERR_INIT;
	struct stat st;
	AUTO_FD fd = openat(files_fd, ABOUT_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       fs_read_all(fd, ABOUT_MAX, text, &err);
}

bool about_read(int files_fd, struct about *about)
{
	AUTO_BUF text = BUF_INIT;
	struct err err = ERR_INIT;
	if (!read_text(files_fd, &text))
		return false;
	AUTO_JSON *object = json_parse(buf_str(&text), text.len, &err);
	if (!json_object_is_type(object, json_type_object))
		return false;
	const char *principal = json_get_str(object, "principal");
	const char *name = json_get_str(object, "name");
	if (principal == NULL || *principal == '\0' || strlen(principal) > PRINCIPAL_MAX ||
	    name == NULL || !name_is_valid(name) || id_is_valid(name))
		return false;
	about->principal = xstrdup(principal);
	about->name = xstrdup(name);
	about->created_at = json_get_int(object, "created_at", 0);
	return true;
}
