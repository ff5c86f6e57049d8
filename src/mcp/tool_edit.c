/*
 * edit_text: exact replacement in a text file. Edits of one sandbox are done one after the other
 * under a lock; a program in the sandbox that writes the file meanwhile is noticed and wins.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/text.h"
#include "box/files.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/toolset.h"

#define EDIT_MAX      (10 * 1024 * 1024) /* bytes of the file, before and after */
#define LOCK_WAIT_MS  10000
#define SHOWN_MATCHES 5
#define SHOWN_BYTES   64      /* of a line quoted in a message */
#define SEARCH_STEPS  2000000 /* compared lines; bounds the search for a near miss */

struct text {
	const char *data;
	size_t len;
};

struct edit {
	struct text old_text, new_text;
	bool replace_all;
};

static int64_t line_of(const char *data, const char *at)
{
	int64_t line = 1;
	for (const char *p = data; (p = memchr(p, '\n', (size_t)(at - p))) != NULL; p++)
		line++;
	return line;
}

/* --- why nothing matched ------------------------------------------------------------------- */

/* Cuts the first line off rest, without its newline. False when rest is empty. */
static bool next_line(struct text *rest, struct text *line)
{
	if (rest->len == 0)
		return false;
	const char *newline = memchr(rest->data, '\n', rest->len);
	line->data = rest->data;
	line->len = newline == NULL ? rest->len : (size_t)(newline - rest->data);
	size_t used = line->len + (newline != NULL);
	rest->data += used;
	rest->len -= used;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct text stripped(struct text line)
{
	while (line.len > 0 && is_blank(line.data[0])) {
		line.data++;
		line.len--;
	}
	while (line.len > 0 && is_blank(line.data[line.len - 1]))
		line.len--;
	return line;
}

static bool same(struct text a, struct text b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Where lines agree with the beginning of the old text, white space at their ends aside. */
struct near {
	int64_t line;          /* of the file, where the best agreement begins; 0: none */
	int64_t agreeing;      /* how many lines agree */
	bool is_whole;         /* all of them do */
	struct text want, got; /* the first two lines that do not agree */
};

static void compare_from(struct text file, struct text old_text, int64_t line, struct near *best,
			 int64_t *steps)
{
	struct near found = {.line = line};
	struct text want, got;
	for (;;) {
		if (!next_line(&old_text, &want)) {
			found.is_whole = true;
			break;
		}
		bool at_end = !next_line(&file, &got);
		++*steps;
		if (at_end || !same(stripped(want), stripped(got))) {
			found.want = want;
			found.got = at_end ? (struct text){"", 0} : got;
			break;
		}
		found.agreeing++;
	}
	if (found.agreeing > best->agreeing)
		*best = found;
}

static struct near find_near(struct text file, struct text old_text)
{
	struct near best = {0};
	struct text line;
	int64_t number = 1, steps = 0;
	/* Blank lines agree everywhere: begin with the first that says something. */
	struct text rest = old_text, first;
	while (next_line(&rest, &first) && stripped(first).len == 0)
		old_text = rest;
	for (; !best.is_whole && steps < SEARCH_STEPS; number++) {
		struct text from = file;
		if (!next_line(&file, &line))
			break;
		compare_from(from, old_text, number, &best, &steps);
	}
	return best;
}

/* The line of the file that holds the first line of a longer old text. */
static bool find_first_line(struct text file, struct text old_text, int64_t *line)
{
	struct text first;
	if (!next_line(&old_text, &first) || old_text.len == 0)
		return false;
	first = stripped(first);
	const char *at = first.len == 0 ? NULL : memmem(file.data, file.len, first.data, first.len);
	if (at == NULL)
		return false;
	*line = line_of(file.data, at);
	return true;
}

static bool refuse_absent(struct text file, struct text old_text, struct err *err)
{
	struct near near = find_near(file, old_text);
	int64_t line;
	if (near.line == 0 && find_first_line(file, old_text, &line)) {
		err_set(err, ERR_INVALID,
			"old_text does not occur in the file; its first line does, within line "
			"%lld, but what follows there differs",
			(long long)line);
		return err_hint(err,
				"Read the file from that line and copy the passage as it is now.");
	}
	if (near.line == 0) {
		err_set(err, ERR_INVALID,
			"old_text does not occur in the file, nor does its first line");
		return err_hint(err,
				"Read the file with read_text and copy the passage as it is now.");
	}
	if (near.is_whole) {
		bool crlf = memmem(file.data, file.len, "\r\n", 2) != NULL &&
			    memmem(old_text.data, old_text.len, "\r\n", 2) == NULL;
		err_set(err, ERR_INVALID,
			"old_text does not occur in the file, but the lines from %lld on differ "
			"from it in white space at their ends only%s",
			(long long)near.line, crlf ? " (the file has CRLF line ends)" : "");
		return err_hint(
			err,
			crlf ? "Write \\r\\n for line ends in old_text and new_text."
			     : "Read these lines with read_text and copy tabs and spaces exactly.");
	}
	AUTO_BUF want = BUF_INIT;
	AUTO_BUF got = BUF_INIT;
	text_quote(&want, near.want.data, near.want.len, SHOWN_BYTES);
	text_quote(&got, near.got.data, near.got.len, SHOWN_BYTES);
	err_set(err, ERR_INVALID,
		"old_text does not occur in the file; its first %lld line(s) do, at line %lld, "
		"but then old_text has \"%s\" where the file has \"%s\" (line %lld)",
		(long long)near.agreeing, (long long)near.line, buf_str(&want), buf_str(&got),
		(long long)near.line + near.agreeing);
	return err_hint(err, "Read the file with read_text and copy the passage as it is now.");
}

/* --- replacing ----------------------------------------------------------------------------- */

static bool refuse_ambiguous(struct text file, struct text old_text, int64_t count, struct err *err)
{
	AUTO_BUF lines = BUF_INIT;
	const char *p = file.data, *end = file.data + file.len;
	for (int i = 0; i < SHOWN_MATCHES; i++) {
		p = memmem(p, (size_t)(end - p), old_text.data, old_text.len);
		if (p == NULL)
			break;
		buf_printf(&lines, "%s%lld", i == 0 ? "" : ", ", (long long)line_of(file.data, p));
		p += old_text.len;
	}
	err_set(err, ERR_INVALID, "old_text occurs %lld times, at line(s) %s%s", (long long)count,
		buf_str(&lines), count > SHOWN_MATCHES ? " and more" : "");
	return err_hint(err, "Add neighbouring lines to old_text so that it occurs once, or set "
			     "replace_all to true.");
}

static int64_t count_matches(struct text file, struct text old_text)
{
	int64_t count = 0;
	const char *p = file.data, *end = file.data + file.len;
	while ((p = memmem(p, (size_t)(end - p), old_text.data, old_text.len)) != NULL) {
		count++;
		p += old_text.len;
	}
	return count;
}

struct edited {
	struct buf text;
	int64_t replacements;
	int64_t first_line;
};

static bool replace(struct text file, const struct edit *edit, struct edited *out, struct err *err)
{
	struct text old_text = edit->old_text, new_text = edit->new_text;
	out->replacements = count_matches(file, old_text);
	if (out->replacements == 0)
		return refuse_absent(file, old_text, err);
	if (out->replacements > 1 && !edit->replace_all)
		return refuse_ambiguous(file, old_text, out->replacements, err);
	int64_t size = (int64_t)file.len +
		       out->replacements * ((int64_t)new_text.len - (int64_t)old_text.len);
	if (size > EDIT_MAX) {
		err_set(err, ERR_TOO_LARGE, "the file would grow to %lld bytes; the limit is %d",
			(long long)size, EDIT_MAX);
		return err_hint(err, "Edit it with exec (sed, python3).");
	}
	const char *p = file.data, *end = file.data + file.len, *match;
	while ((match = memmem(p, (size_t)(end - p), old_text.data, old_text.len)) != NULL) {
		if (out->first_line == 0)
			out->first_line = line_of(file.data, match);
		buf_append(&out->text, p, (size_t)(match - p));
		buf_append(&out->text, new_text.data, new_text.len);
		p = match + old_text.len;
	}
	buf_append(&out->text, p, (size_t)(end - p));
	return true;
}

/* --- the file ------------------------------------------------------------------------------ */

static bool load(const struct sandbox_use *use, const char *path, struct buf *text, struct stat *st,
		 struct err *err)
{
	AUTO_FD fd = files_open(use, path, st, err);
	if (fd < 0)
		return false;
	if (st->st_size > EDIT_MAX || !fs_read_all(fd, EDIT_MAX, text, err)) {
		if (st->st_size <= EDIT_MAX && err->code != ERR_TOO_LARGE)
			return false;
		err_set(err, ERR_TOO_LARGE, "the file has %lld bytes; edit_text takes up to %d",
			(long long)st->st_size, EDIT_MAX);
		return err_hint(err, "Edit it with exec (sed, python3).");
	}
	if (text_is_utf8(buf_str(text), text->len))
		return true;
	err_set(err, ERR_INVALID,
		"the file is not UTF-8 text, and edit_text keeps bytes as they are");
	return err_hint(err,
			"Convert it first, e.g. exec iconv -f GB18030 -t UTF-8 a.txt > b.txt, or "
			"change it with a program.");
}

/* The lock keeps other edits out, but not the programs in the sandbox. */
static bool check_unchanged(const struct sandbox_use *use, const char *path, const struct stat *old,
			    struct err *err)
{
	struct stat now;
	AUTO_FD fd = files_open(use, path, &now, err);
	if (fd < 0)
		return false;
	if (now.st_ino == old->st_ino && now.st_size == old->st_size &&
	    now.st_mtim.tv_sec == old->st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == old->st_mtim.tv_nsec)
		return true;
	err_set(err, ERR_CONFLICT,
		"the file was changed by a program during the edit; it is as that program left it");
	return err_hint(err, "Read it again and repeat the edit.");
}

static bool edit_file(struct app *app, const struct sandbox_use *use, const char *path,
		      const struct edit *edit, struct edited *out, struct err *err)
{
	AUTO_FD lock = lock_open(use->run_dir_fd, "edit", err);
	if (lock < 0)
		return sandbox_explain(use, err);
	if (!lock_take(lock, LOCK_EXCLUSIVE, LOCK_WAIT_MS, err))
		return false;
	AUTO_BUF text = BUF_INIT;
	struct stat st;
	if (!load(use, path, &text, &st, err))
		return false;
	struct text file = {buf_str(&text), text.len};
	return replace(file, edit, out, err) &&
	       files_check_room(app, use, (int64_t)out->text.len, err) &&
	       check_unchanged(use, path, &st, err) &&
	       files_write(use, path, buf_str(&out->text), out->text.len, err);
}

static bool read_edit(const struct tool_call *call, struct edit *edit, struct err *err)
{
	edit->old_text.data = args_bytes(call, "old_text", &edit->old_text.len);
	edit->new_text.data = args_bytes(call, "new_text", &edit->new_text.len);
	edit->replace_all = args_bool(call, "replace_all", false);
	if (edit->old_text.len == 0) {
		err_set(err, ERR_INVALID, "old_text is empty");
		return err_hint(err,
				"Give the passage to replace, or use write_text for a whole file.");
	}
	if (same(edit->old_text, edit->new_text)) {
		err_set(err, ERR_INVALID,
			"old_text and new_text are the same; nothing would change");
		return err_hint(err, "Give the changed passage as new_text.");
	}
	return true;
}

static bool call_edit(struct tool_call *call, struct err *err)
{
	const char *handle;
	struct edit edit;
	AUTO_BUF path = BUF_INIT;
	if (!args_sandbox(call, &handle, err) || !args_file_path(call, "path", &path, err) ||
	    !read_edit(call, &edit, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	if (!target_find_to_change(call, handle, &target, err))
		return false;
	struct edited edited = {.text = BUF_INIT};
	bool ok = edit_file(call->app, &target.use, path.data, &edit, &edited, err);
	if (ok) {
		call->structured = json_object_new_object();
		target_add_path(call->structured, "path", &path);
		json_add_int(call->structured, "replacements", edited.replacements);
		json_add_int(call->structured, "size", (int64_t)edited.text.len);
		json_add_int(call->structured, "first_line", edited.first_line);
	}
	buf_finish(&edited.text);
	return ok;
}

/* clang-format off */
const struct tool tool_edit_text = {
	.name = "edit_text",
	.title = "Edit a text file",
	.description =
		"Replaces a passage of a text file in a sandbox and leaves the rest as it is, byte for "
		"byte. Use it for changes in an existing file; to replace the whole file use write_text. "
		"old_text must be in the file exactly once, white space and line ends included, so give "
		"enough neighbouring lines; with replace_all true every occurrence is replaced. When it "
		"does not occur, or more than once, nothing is changed and the error says where the "
		"nearest lines are. UTF-8 files up to 10 MiB (10485760 bytes). Returns path, "
		"replacements, size and first_line, the line of the first change. Example: {\"sandbox\":"
		"\"work\",\"path\":\"count.py\",\"old_text\":\"n = 1\",\"new_text\":\"n = 2\"}",
	.input_schema = L_OBJECT_NEEDS(
		L_QUOTE("path") "," L_QUOTE("old_text") "," L_QUOTE("new_text"),
		ARGS_SANDBOX ","
		L_STR("path", L_LENGTH(1, FILES_PATH_MAX),
		      "File, relative to /workspace or absolute below it.") ","
		L_STR("old_text", "", "The passage as it is in the file; may span lines; not empty.") ","
		L_STR("new_text", "", "What to put in its place; empty deletes the passage.") ","
		L_BOOL("replace_all", L_DEFAULT("false"), "true: replace every occurrence.")),
	.output_schema = L_RESULT(
		L_QUOTE("path") "," L_QUOTE("replacements") "," L_QUOTE("size") "," L_QUOTE("first_line"),
		L_STR("path", "", "The file.") ","
		L_INT("replacements", L_AT_LEAST(1), "How many passages were replaced.") ","
		L_INT("size", L_AT_LEAST(0), "Bytes of the file now.") ","
		L_INT("first_line", L_AT_LEAST(1), "Line of the first change.")),
	.read_only = false,
	.destructive = true,
	.idempotent = false,
	.open_world = false,
	.call = call_edit,
};
/* clang-format on */
