/* Every line of an env file is shown, left out as blank or comment, or a reason to refuse it. */
#include "fuzz.h"

#include <sys/mman.h>

#include "base/env_file.h"
#include "base/fs.h"

static void count(void *ctx, const char *name, const char *value)
{
	++*(size_t *)ctx;
	assert(name[0] != '\0' && strpbrk(name, "=\n") == NULL);
	assert(strchr(value, '\n') == NULL);
}

/* Lines that are neither blank nor comments. */
static size_t count_lines(struct fuzz_input in)
{
	size_t lines = 0;
	while (in.len > 0) {
		AUTO_FREE char *line = fuzz_line(&in);
		const char *text = line + strspn(line, " \t");
		lines += text[0] != '\0' && text[0] != '#' && text[0] != '\r';
	}
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	AUTO_FD fd = memfd_create("env", MFD_CLOEXEC);
	assert(fs_write_all(fd, data, size, &err) && lseek(fd, 0, SEEK_SET) == 0);
	size_t shown = 0, lines = count_lines(fuzz_input(data, size));
	if (env_file_read(fd, count, &shown, &err)) {
		assert(shown == lines);
		return 0;
	}
	fuzz_check_err(&err);
	assert(shown <= lines);
	return 0;
}
