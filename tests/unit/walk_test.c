/* Walks through a tree that its owner lays out, and changes, as it likes. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "box/walk.h"

static char *root;
static int root_fd;

static void make(void)
{
	root = unit_tempdir();
	ck_assert_int_eq(chdir(root), 0);
	root_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void unmake(void)
{
	close(root_fd);
	ck_assert_int_eq(chdir("/"), 0);
	unit_tempdir_remove(root);
}

static void put(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

/* What a walk shows, each on a line; a directory ends in a slash. */
struct seen {
	struct buf text;
	int wanted, count;
	void (*during)(const char *path);
};

static bool see(void *ctx, const struct walk_entry *entry)
{
	struct seen *seen = ctx;
	if (seen->wanted > 0 && seen->count == seen->wanted)
		return false;
	seen->count++;
	const char *slash = strrchr(entry->path, '/');
	ck_assert_str_eq(entry->name, slash == NULL ? entry->path : slash + 1);
	ck_assert_int_eq(entry->is_dir, S_ISDIR(entry->st->st_mode));
	buf_printf(&seen->text, "%s%s\n", entry->path, entry->is_dir ? "/" : "");
	if (seen->during != NULL)
		seen->during(entry->path);
	return true;
}

static bool walk(const char *after, bool hidden, const char *expected)
{
	struct seen seen = {.text = BUF_INIT};
	struct walk_options options = {.after = after, .hidden = hidden};
	bool whole = walk_tree(root_fd, &options, see, &seen);
	ck_assert_str_eq(buf_str(&seen.text), expected);
	buf_finish(&seen.text);
	return whole;
}

static void lay_out(void)
{
	mkdir("b", 0755);
	mkdir("b/d", 0755);
	mkdir(".git", 0755);
	mkdir("e", 0755);
	put("a");
	put("b-c"); /* '-' sorts before '/': a directory's files still follow it at once */
	put("b/d/x");
	put("b/z");
	put("c");
	put(".git/config");
	put("B");
	put("\xff");
}

TEST(a_tree_is_shown_depth_first_in_byte_order_without_hidden_names_and_links)
{
	make();
	lay_out();
	ck_assert_int_eq(symlink("/etc", "link"), 0);
	ck_assert_int_eq(symlink("b", "same"), 0);
	ck_assert_int_eq(mkfifo("fifo", 0644), 0);
	ck_assert(walk(NULL, false, "B\na\nb/\nb/d/\nb/d/x\nb/z\nb-c\nc\ne/\n\xff\n"));
	ck_assert(walk(NULL, true,
		       ".git/\n.git/config\nB\na\nb/\nb/d/\nb/d/x\nb/z\nb-c\nc\ne/\n\xff\n"));
	unmake();
}
TEST_END

TEST(a_walk_goes_on_behind_any_place_be_it_there_or_not)
{
	make();
	lay_out();
	ck_assert(walk("", false, "B\na\nb/\nb/d/\nb/d/x\nb/z\nb-c\nc\ne/\n\xff\n"));
	ck_assert(walk("b", false, "b/d/\nb/d/x\nb/z\nb-c\nc\ne/\n\xff\n"));
	ck_assert(walk("b/d/x", false, "b/z\nb-c\nc\ne/\n\xff\n"));
	ck_assert(walk("b/e/gone", false, "b/z\nb-c\nc\ne/\n\xff\n"));
	ck_assert(walk("b/zz", false, "b-c\nc\ne/\n\xff\n"));
	ck_assert(walk("bb", false, "c\ne/\n\xff\n"));
	ck_assert(walk("a/was/a/directory", false, "b/\nb/d/\nb/d/x\nb/z\nb-c\nc\ne/\n\xff\n"));
	ck_assert(walk("\xff", false, ""));
	unmake();
}
TEST_END

TEST(pages_of_any_size_show_everything_exactly_once)
{
	make();
	lay_out();
	for (int size = 1; size < 12; size++) {
		struct seen all = {.text = BUF_INIT};
		char after[64] = "";
		for (bool whole = false; !whole;) {
			struct seen page = {.text = BUF_INIT, .wanted = size};
			struct walk_options options = {.after = after};
			whole = walk_tree(root_fd, &options, see, &page);
			ck_assert(page.count > 0 || whole);
			buf_puts(&all.text, buf_str(&page.text));
			if (page.count > 0) {
				/* its last line, without what marks a directory */
				char *text = page.text.data, *end = text + page.text.len - 1;
				*end = '\0';
				char *line = strrchr(text, '\n');
				snprintf(after, sizeof after, "%s", line == NULL ? text : line + 1);
				if (after[strlen(after) - 1] == '/')
					after[strlen(after) - 1] = '\0';
			}
			buf_finish(&page.text);
		}
		ck_assert_str_eq(buf_str(&all.text),
				 "B\na\nb/\nb/d/\nb/d/x\nb/z\nb-c\nc\ne/\n\xff\n");
		buf_finish(&all.text);
	}
	unmake();
}
TEST_END

static void fill(const char *dir, int count)
{
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	for (int i = 0; i < count; i++) {
		char path[64];
		snprintf(path, sizeof path, "%s/%04d", dir, i);
		put(path);
	}
}

TEST(a_huge_directory_is_shown_without_what_is_in_it_and_that_is_told)
{
	make();
	fill("full", WALK_ENTRIES_MAX);
	struct seen seen = {.text = BUF_INIT};
	ck_assert(walk_tree(root_fd, &(struct walk_options){0}, see, &seen));
	ck_assert_int_eq(seen.count, WALK_ENTRIES_MAX + 1);
	buf_finish(&seen.text);
	put("full/one-more");
	ck_assert(!walk(NULL, false, "full/\n"));
	unmake();
}
TEST_END

TEST(a_deep_tree_ends_at_the_depth_that_can_be_read)
{
	make();
	char path[128] = "";
	AUTO_BUF expected = BUF_INIT;
	for (int i = 0; i < WALK_DEPTH_MAX + 3; i++) {
		strcat(path, i == 0 ? "d" : "/d");
		ck_assert_int_eq(mkdir(path, 0755), 0);
		if (i < WALK_DEPTH_MAX)
			buf_printf(&expected, "%s/\n", path);
	}
	ck_assert(!walk(NULL, false, buf_str(&expected)));
	unmake();
}
TEST_END

static void replace_by_link(const char *path)
{
	if (strcmp(path, "b") != 0)
		return;
	ck_assert_int_eq(rename("b", "moved"), 0);
	ck_assert_int_eq(symlink("moved", "b"), 0);
}

TEST(a_directory_that_becomes_a_link_in_the_middle_is_not_entered)
{
	make();
	lay_out();
	struct seen seen = {.text = BUF_INIT, .during = replace_by_link};
	ck_assert(!walk_tree(root_fd, &(struct walk_options){0}, see, &seen));
	ck_assert_str_eq(buf_str(&seen.text), "B\na\nb/\nb-c\nc\ne/\n\xff\n");
	buf_finish(&seen.text);
	unmake();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_tree_is_shown_depth_first_in_byte_order_without_hidden_names_and_links,
		a_walk_goes_on_behind_any_place_be_it_there_or_not,
		pages_of_any_size_show_everything_exactly_once,
		a_huge_directory_is_shown_without_what_is_in_it_and_that_is_told,
		a_deep_tree_ends_at_the_depth_that_can_be_read,
		a_directory_that_becomes_a_link_in_the_middle_is_not_entered,
	};
	return unit_run("walk", tests, ARRAY_LEN(tests));
}
