/* See env_file.h. */
#include "base/env_file.h"

#include <sodium.h>
#include <string.h>

#include "base/fs.h"

#define SIZE_MAX_BYTES (256 * 1024) /* of a file; settings have some hundred lines at most */

static void unquote(char *value)
{
	size_t len = strlen(value);
	while (len > 0 && strchr(" \t\r", value[len - 1]) != NULL)
		value[--len] = '\0';
	if (len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0]) {
		memmove(value, value + 1, len - 2);
		value[len - 2] = '\0';
	}
}

static bool read_line(char *line, int number, env_file_visit *visit, void *ctx, struct err *err)
{
	line += strspn(line, " \t");
	if (*line == '\0' || *line == '#' || *line == '\r')
		return true;
	if (strncmp(line, "export ", 7) == 0)
		line += 7;
	char *equals = strchr(line, '=');
	if (equals == NULL || equals == line) {
		err_set(err, ERR_INVALID, "line %d of the env file is not NAME=value", number);
		return err_hint(
			err, "Write one NAME=value a line; lines that start with # are comments.");
	}
	*equals = '\0';
	unquote(equals + 1);
	visit(ctx, line, equals + 1);
	return true;
}

/* A NUL would hide the rest of the file: a setting that is not seen is worse than no start. */
static bool has_no_nul(const struct buf *text, struct err *err)
{
	if (strlen(buf_str(text)) == text->len)
		return true;
	err_set(err, ERR_INVALID, "the env file holds a NUL byte, so it is no text");
	return err_hint(err, "Save it as UTF-8 text; editors of Windows may write UTF-16.");
}

bool env_file_read(int fd, env_file_visit *visit, void *ctx, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	if (!fs_read_all(fd, SIZE_MAX_BYTES, &text, err))
		return false;
	bool ok = has_no_nul(&text, err);
	int number = 0;
	char *rest = text.data;
	for (char *line; ok && (line = strsep(&rest, "\n")) != NULL;)
		ok = read_line(line, ++number, visit, ctx, err);
	if (text.data != NULL)
		sodium_memzero(text.data, text.cap);
	return ok;
}
