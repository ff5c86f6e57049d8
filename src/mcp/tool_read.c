/*
 * read_text: a page of lines out of a file of any size. The file is streamed once in blocks;
 * memory is bounded by the page, time by SCAN_MAX, whatever the sandbox made of the file.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "box/files.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/toolset.h"

#define LINES_DEFAULT 2000
#define LINES_MAX     100000
#define BLOCK_BYTES   65536
#define SNIFF_BYTES   8192                 /* how much is looked at for NULs, as git and grep do */
#define COUNT_MAX     (64 * 1024 * 1024)   /* files up to this size get their lines counted */
#define SCAN_MAX      (1024 * 1024 * 1024) /* bytes: about a second of reading */

/* A page being cut out of a stream of bytes. */
struct page {
	int64_t first, limit; /* line numbers begin at 1 */
	size_t max_bytes;
	struct buf text;
	int64_t taken;     /* lines in text, a partial one included */
	int64_t ended;     /* newlines seen in the file so far */
	size_t line_start; /* where in text the line begins that is being taken */
	bool in_line;      /* bytes after the last newline were seen */
	bool is_full;      /* nothing more is taken */
	bool is_cut;       /* the last line taken is not whole */
	bool has_more;     /* a line after the page was seen */
};

/* Takes part of a line if it belongs to the page. A line that does not fit is left for the next
 * page, unless it is the first: then as much as fits is taken. */
static void page_take(struct page *page, const char *data, size_t len)
{
	bool starts = !page->in_line;
	if (starts && page->is_full)
		page->has_more = true;
	if (page->is_full)
		return;
	if (starts && page->taken == page->limit) {
		page->is_full = page->has_more = true;
		return;
	}
	if (starts) {
		page->line_start = page->text.len;
		page->taken++;
	}
	size_t room = page->max_bytes - page->text.len;
	if (len <= room) {
		buf_append(&page->text, data, len);
		return;
	}
	page->is_full = true;
	if (page->line_start > 0) {
		page->text.len = page->line_start;
		page->text.data[page->text.len] = '\0';
		page->taken--;
		page->has_more = true;
	} else {
		buf_append(&page->text, data, room);
		page->is_cut = true;
	}
}

static void page_feed(struct page *page, const char *data, size_t len)
{
	while (len > 0) {
		const char *newline = memchr(data, '\n', len);
		size_t part = newline == NULL ? len : (size_t)(newline - data) + 1;
		if (page->ended + 1 >= page->first)
			page_take(page, data, part);
		page->in_line = newline == NULL;
		page->ended += newline != NULL;
		data += part;
		len -= part;
	}
}

static int64_t page_total(const struct page *page)
{
	return page->ended + page->in_line;
}

/* Streams at most size bytes, the size at the time of opening: the file may grow as we read. */
static bool page_read(struct page *page, int fd, int64_t size, bool *complete, struct err *err)
{
	AUTO_BUF block = BUF_INIT;
	char *space = buf_reserve(&block, BLOCK_BYTES);
	bool count_all = size <= COUNT_MAX;
	int64_t done = 0;
	while (done < size && done < SCAN_MAX && (count_all || !page->has_more)) {
		size_t want = size - done < BLOCK_BYTES ? (size_t)(size - done) : BLOCK_BYTES;
		ssize_t got = read(fd, space, want);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(err, "read");
		if (got == 0)
			size = done; /* it was shortened meanwhile */
		page_feed(page, space, (size_t)got);
		done += got;
	}
	*complete = done >= size;
	if (page->taken == 0 && !*complete) {
		err_set(err, ERR_TOO_LARGE,
			"line %lld is not within the first %d bytes of the file",
			(long long)page->first, SCAN_MAX);
		return err_hint(err, "Use exec with tail or sed -n to see that part of the file.");
	}
	return true;
}

static bool refuse_binary(int64_t size, const char *kind, struct err *err)
{
	err_set(err, ERR_INVALID, "the file is %s, not text; it has %lld bytes", kind,
		(long long)size);
	return err_hint(err,
			"Look at it with exec (file, xxd, or a program for its format), convert "
			"it there, or hand it out with download_file.");
}

/* A NUL tells binary from text; so do UTF-16 files, which deserve a better name. */
static bool check_text(int fd, int64_t size, struct err *err)
{
	char head[SNIFF_BYTES];
	ssize_t len = pread(fd, head, sizeof head, 0);
	if (len < 0)
		return err_sys(err, "pread");
	if (memchr(head, '\0', (size_t)len) == NULL)
		return true;
	if (len >= 2 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0))
		return refuse_binary(size, "UTF-16 (convert it with iconv -f UTF-16 -t UTF-8)",
				     err);
	return refuse_binary(size, "binary", err);
}

static void note_page(const struct page *page, const char *encoding, bool complete,
		      struct buf *note)
{
	if (page->is_cut)
		target_note(note,
			    "Line %lld is longer than %zu bytes and is cut here; to see the rest "
			    "use exec with cut -c or grep -o.",
			    (long long)page->first, page->max_bytes);
	if (page->taken == 0 && complete && page->first > 1)
		target_note(note, "The file has only %lld lines.", (long long)page_total(page));
	if (strcmp(encoding, "binary") == 0)
		target_note(note,
			    "Some bytes are neither UTF-8 nor GB18030; they are shown as U+FFFD.");
}

static void report(struct json_object *result, const struct page *page, bool complete)
{
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF note = BUF_INIT;
	const char *encoding =
		text_decode(&text, buf_str(&page->text), page->text.len, false, page->is_cut);
	bool more = page->has_more;
	json_add_strn(result, "content", buf_str(&text), text.len);
	json_add_str(result, "encoding", encoding);
	json_add_int(result, "first_line", page->first);
	json_add_int(result, "lines", page->taken);
	if (complete)
		json_add_int(result, "total_lines", page_total(page));
	json_add_bool(result, "truncated", more || page->is_cut);
	if (more)
		json_add_int(result, "next_offset", page->first + page->taken);
	note_page(page, encoding, complete, &note);
	target_add_note(result, &note);
}

static bool call_read(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	AUTO_BUF path = BUF_INIT;
	if (!args_sandbox(call, &handle, err) || !args_file_path(call, "path", &path, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	if (!target_find(call, handle, &target, err))
		return false;
	struct stat st;
	AUTO_FD fd = files_open(&target.use, path.data, &st, err);
	if (fd < 0 || !check_text(fd, st.st_size, err))
		return false;
	struct page page = {.first = args_int(call, "offset", 0),
			    .limit = args_int(call, "limit", 0),
			    .max_bytes = (size_t)app->conf->read_text_max};
	if (page.first == 0)
		page.first = 1;
	if (page.limit == 0)
		page.limit = LINES_DEFAULT;
	bool complete = false;
	bool ok = page_read(&page, fd, st.st_size, &complete, err);
	if (ok) {
		call->structured = json_object_new_object();
		target_add_path(call->structured, "path", &path);
		json_add_int(call->structured, "size", st.st_size);
		report(call->structured, &page, complete);
	}
	buf_finish(&page.text);
	return ok;
}

/* clang-format off */
const struct tool tool_read_text = {
	.name = "read_text",
	.title = "Read a text file",
	.description =
		"Reads lines of a text file in a sandbox. Use it for scripts, logs and data up to some "
		"hundred KB; for larger files read parts with offset and limit, or search with exec "
		"(grep, head, tail). Starts at line 1 and returns up to 2000 lines and 200000 bytes unless "
		"the server is set otherwise; when there is more, truncated is true and next_offset is the "
		"offset for the next call. The sandbox and the file must exist. UTF-8 and GB18030 (GBK) "
		"are read, encoding says which; a binary file is an error. Content has no line numbers "
		"added. Example: {\"sandbox\":\"work\",\"path\":\"run.log\",\"offset\":2001}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("path"),
		ARGS_SANDBOX ","
		L_STR("path", L_LENGTH(1, FILES_PATH_MAX),
		      "File, relative to /workspace or absolute below it.") ","
		L_INT("offset", L_AT_LEAST(0) L_DEFAULT("1"), "First line to return; lines count from 1.") ","
		L_INT("limit", L_BETWEEN(0, LINES_MAX) L_DEFAULT(L_TEXT(LINES_DEFAULT)),
		      "Lines to return at most, up to 100000; the limit in bytes may come first.")),
	.output_schema = L_RESULT(
		L_QUOTE("path") "," L_QUOTE("content") "," L_QUOTE("encoding") "," L_QUOTE("first_line") ","
		L_QUOTE("lines") "," L_QUOTE("size") "," L_QUOTE("truncated"),
		L_STR("path", "", "The file.") ","
		L_STR("content", "", "The lines as they are in the file, converted to UTF-8.") ","
		L_STR("encoding", "", "utf-8, gb18030, or binary when some bytes are shown as U+FFFD.") ","
		L_INT("first_line", L_AT_LEAST(1), "Number of the first line in content.") ","
		L_INT("lines", L_AT_LEAST(0), "How many lines content holds.") ","
		L_INT("total_lines", L_AT_LEAST(0), "Lines of the file; absent for very large files.") ","
		L_INT("size", L_AT_LEAST(0), "Bytes of the file.") ","
		L_BOOL("truncated", "", "Whether the file has more after content.") ","
		L_INT("next_offset", L_AT_LEAST(1), "Offset of the next part; absent at the end.") ","
		L_STR("note", "", "What else to know.")),
	.read_only = true,
	.destructive = false,
	.idempotent = true,
	.open_world = false,
	.call = call_read,
};
/* clang-format on */
