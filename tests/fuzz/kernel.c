/*
 * What a watcher says, as its packets come: whatever they are, a result keeps its promises, and it
 * is the same when every packet comes in pieces.
 *
 * Input: a line with the size of a piece and the bytes that images may have, then packets, each but
 * the first begun by a line "--".
 */
#include "fuzz.h"

#include "run/kernel_frame.h"

#define HEAD_LEN 2

struct reader {
	struct kernel_run run;
	struct kernel_frames frames;
};

static void reader_init(struct reader *reader, int64_t image_bytes)
{
	kernel_run_init(&reader->run, 10, 10);
	kernel_frames_init(&reader->frames, &reader->run, image_bytes);
}

static void reader_finish(struct reader *reader)
{
	kernel_frames_finish(&reader->frames);
	kernel_run_finish(&reader->run);
}

/* In memory of just that size. */
static void add(struct reader *reader, const char *packet, size_t len)
{
	AUTO_FREE char *copy = xmalloc(len + (len == 0));
	memcpy(copy, packet, len);
	kernel_frames_add(&reader->frames, copy, len);
}

static void add_in_pieces(struct reader *reader, const char *packet, size_t len, size_t size)
{
	if (len < HEAD_LEN || (packet[1] != '0' && packet[1] != '1')) {
		add(reader, packet, len);
		return;
	}
	const char *payload = packet + HEAD_LEN;
	size_t left = len - HEAD_LEN;
	for (bool more = true; more;) {
		size_t n = left < size ? left : size;
		AUTO_BUF piece = BUF_INIT;
		more = n < left;
		buf_putc(&piece, packet[0]);
		buf_putc(&piece, more ? '1' : packet[1]);
		buf_append(&piece, payload, n);
		add(reader, piece.data, piece.len);
		payload += n;
		left -= n;
	}
}

static void check_text(const char *text, size_t len)
{
	assert(text_is_utf8(text, len));
}

static void check_word(const char *text)
{
	assert(text != NULL && text[0] != '\0');
	check_text(text, strlen(text));
}

static void check_images(const struct kernel_run *run, int64_t image_bytes)
{
	int64_t total = 0;
	for (size_t i = 0; i < run->image_count; i++) {
		const struct kernel_image *image = &run->images[i];
		bool is_png = strcmp(image->mime, "image/png") == 0;
		const char *signature = is_png ? "\x89PNG\r\n\x1A\n" : "\xFF\xD8\xFF";
		assert(is_png || strcmp(image->mime, "image/jpeg") == 0);
		assert(image->data.len > strlen(signature));
		assert(memcmp(image->data.data, signature, strlen(signature)) == 0);
		assert(image->width > 0 && image->height > 0);
		if (image->file)
			check_word(image->file);
		total += (int64_t)image->data.len;
	}
	assert(total <= image_bytes || run->image_count == 0);
}

static void check_end(const struct reader *reader)
{
	const struct kernel_run *run = &reader->run;
	assert(reader->frames.ended == (run->end != KERNEL_END_NONE));
	assert(run->code >= 0 && run->code <= 255 &&
	       (run->code == 0 || run->end != KERNEL_END_DONE));
	assert((run->signal != 0) == (run->end == KERNEL_END_SIGNAL));
	assert(run->cpu_ms >= 0 && run->max_rss_kib >= 0 && run->runs >= 0);
}

static void check_promises(const struct reader *reader, int64_t image_bytes)
{
	const struct kernel_run *run = &reader->run;
	assert(run->image_count <= KERNEL_IMAGES_MAX && run->file_count <= KERNEL_FILES_MAX);
	assert(run->display_count <= KERNEL_DISPLAYS_MAX);
	check_images(run, image_bytes);
	check_end(reader);
	for (size_t i = 0; i < run->display_count; i++) {
		check_word(run->displays[i].mime);
		check_text(buf_str(&run->displays[i].text), run->displays[i].text.len);
	}
	for (size_t i = 0; i < run->file_count; i++)
		check_word(run->files[i].path);
	check_text(buf_str(&run->notes), run->notes.len);
	if (run->value)
		assert(json_get_str(run->value, "text") && json_get_str(run->value, "type"));
	if (run->error)
		assert(json_get_str(run->error, "type") && json_get_str(run->error, "message") &&
		       json_get_str(run->error, "traceback"));
}

static bool same_text(struct json_object *a, struct json_object *b)
{
	return strcmp(json_text(a, NULL), json_text(b, NULL)) == 0;
}

static void check_same(const struct kernel_run *a, const struct kernel_run *b)
{
	assert(a->started == b->started && a->left_out == b->left_out && a->end == b->end);
	assert(a->code == b->code && a->signal == b->signal && a->state == b->state);
	assert(a->image_count == b->image_count && a->display_count == b->display_count);
	assert(a->file_count == b->file_count && a->notes.len == b->notes.len);
	assert(same_text(a->value, b->value) && same_text(a->error, b->error));
	for (size_t i = 0; i < a->image_count; i++)
		assert(a->images[i].data.len == b->images[i].data.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	AUTO_FREE char *numbers = fuzz_line(&in);
	char *rest = numbers;
	size_t piece = strtoul(rest, &rest, 10);
	int64_t image_bytes = strtoll(rest, NULL, 10);
	struct reader whole, pieces;
	reader_init(&whole, image_bytes);
	reader_init(&pieces, image_bytes);
	while (in.len > 0) {
		size_t len;
		const char *packet = fuzz_part(&in, "--", &len);
		add(&whole, packet, len);
		add_in_pieces(&pieces, packet, len, piece == 0 ? 1 : piece);
	}
	check_promises(&whole, image_bytes);
	check_same(&whole.run, &pieces.run);
	reader_finish(&whole);
	reader_finish(&pieces);
	return 0;
}
