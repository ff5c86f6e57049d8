/*
 * Collects secrets. A file of keys/ is masked without its last line end, as people print it; the
 * copy that was read is wiped, the mask's own lasts as long as the mask.
 */
#include "box/secrets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>

#include "base/fs.h"

#define KEY_FILE_MAX (64 * 1024) /* a token has 43 bytes; a certificate a few thousand */

static const char *const marks[] = {"KEY", "TOKEN", "SECRET", "PASSWORD"};

static bool is_secret_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strcasestr(name, marks[i]) != NULL)
			return true;
	return false;
}

static void add_env(struct mask *mask, struct json_object *env)
{
	if (env == NULL)
		return;
	json_object_object_foreach(env, name, value)
	{
		if (is_secret_name(name) && json_str(value) != NULL)
			mask_add(mask, json_str(value), json_str_len(value));
	}
}

static bool add_stored_env(struct mask *mask, const struct sandbox_row *sandbox, struct err *err)
{
	if (sandbox->env == NULL)
		return true;
	struct err parsing = ERR_INIT;
	AUTO_JSON *env = json_parse(sandbox->env, strlen(sandbox->env), &parsing);
	if (!json_object_is_type(env, json_type_object)) {
		err_set(err, ERR_INTERNAL, "the stored env is damaged");
		return err_in(err, "env of sandbox %s", sandbox->id);
	}
	add_env(mask, env);
	return true;
}

static void add_text(struct mask *mask, const char *text)
{
	if (text != NULL)
		mask_add(mask, text, strlen(text));
}

static bool is_text(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((p[i] < 0x20 || p[i] > 0x7E) && (i == 0 || strchr("\t\n\r", p[i]) == NULL))
			return false;
	return true;
}

static bool add_key_file(struct mask *mask, int keys_fd, const char *name, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	int rc = sign_read_secret(keys_fd, name, KEY_FILE_MAX, &text, err);
	size_t len = text.len;
	while (len > 0 && (text.data[len - 1] == '\n' || text.data[len - 1] == '\r'))
		len--;
	/* Nothing prints a key of random bytes; and one that begins like a line end would hold the
	 * newest line of all output back. */
	if (rc == 1 && is_text(buf_str(&text), len))
		mask_add(mask, buf_str(&text), len);
	if (text.data != NULL)
		sodium_memzero(text.data, text.cap);
	return rc >= 0 || err_in(err, "keys/%s", name);
}

static bool is_directory(int dirfd, const char *name)
{
	struct stat st;
	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool add_key_files(struct mask *mask, int keys_fd, struct err *err)
{
	int fd = fs_open_dir(keys_fd, ".", err);
	if (fd < 0)
		return false;
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return err_sys(err, "read keys");
	}
	bool ok = true;
	const struct dirent *entry;
	while (ok && (entry = readdir(dir)) != NULL) {
		/* A name with a dot is not a key yet. */
		if (entry->d_name[0] != '.' && !is_directory(keys_fd, entry->d_name))
			ok = add_key_file(mask, keys_fd, entry->d_name, err);
	}
	closedir(dir);
	return ok;
}

struct mask *secrets_mask(const struct app *app, const struct sandbox_row *sandbox,
			  struct json_object *call_env, struct err *err)
{
	struct mask *mask = mask_new();
	add_text(mask, app->token);
	add_text(mask, app->conf->token);
	add_text(mask, app->conf->signing_key);
	add_env(mask, call_env);
	if (add_stored_env(mask, sandbox, err) && add_key_files(mask, app->spool.keys_fd, err))
		return mask;
	mask_free(mask);
	return NULL;
}
