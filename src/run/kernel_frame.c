/*
 * One table says which members the JSON of each frame has. What passes it is copied into an object
 * of its own, so nothing else of a payload goes any further.
 */
#include "run/kernel_frame.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define HEAD_LEN 2 /* letter, and whether the frame goes on */

/* An end frame comes whatever came before it, so it has a limit of its own. */
#define END_MAX   4096
#define NOTES_MAX 8192
#define SIDE_MAX  100000 /* pixels; PNG allows 2^31, JPEG 65535 */
#define PATH_SIZE 4095   /* PATH_MAX without its NUL */

/* --- members ------------------------------------------------------------------------------- */

enum kind {
	KIND_TEXT,   /* cut at max bytes */
	KIND_WORD,   /* 1 to max bytes, none of them NUL */
	KIND_FLAG,   /* true or false */
	KIND_NUMBER, /* an integer from 0 to max */
};

struct member {
	const char *name;
	int64_t max;
	enum kind kind;
	bool optional;
};

static const struct member value_members[] = {
	{"text", 256 * 1024, KIND_TEXT, false},
	{"type", 256, KIND_TEXT, false},
	{"truncated", 0, KIND_FLAG, false},
};
static const struct member display_members[] = {
	{"mime", 100, KIND_WORD, false},
	{"text", KERNEL_FRAME_MAX, KIND_TEXT, false},
};
static const struct member image_members[] = {
	/* clang-format off */
	{"mime", 31, KIND_WORD, false},
	{"width", SIDE_MAX, KIND_NUMBER, false},
	{"height", SIDE_MAX, KIND_NUMBER, false},
	{"scaled", 0, KIND_FLAG, false},
	{"file", PATH_SIZE, KIND_WORD, true},
	/* clang-format on */
};
static const struct member file_members[] = {
	{"path", PATH_SIZE, KIND_WORD, false},
	{"about", 256, KIND_TEXT, true},
};
static const struct member error_members[] = {
	{"type", 256, KIND_TEXT, false},
	{"message", 8192, KIND_TEXT, false},
	{"traceback", 64 * 1024, KIND_TEXT, false},
	{"hint", 2048, KIND_TEXT, true},
};
static const struct member note_members[] = {
	{"text", 1024, KIND_TEXT, false},
};
static const struct member end_members[] = {
	{"end", 16, KIND_WORD, false},
	{"code", 255, KIND_NUMBER, true},
	{"signal", 64, KIND_NUMBER, true}, /* SIGRTMAX */
	{"timed_out", 0, KIND_FLAG, true},
	{"state", 16, KIND_WORD, true},
	{"cpu_ms", 1LL << 40, KIND_NUMBER, true}, /* more than any machine has to give */
	{"max_rss_kib", 1LL << 40, KIND_NUMBER, true},
	{"runs", 1LL << 31, KIND_NUMBER, true},
};

/* The value to keep, NULL when it is refused. *cut: it is shorter than what came. */
static struct json_object *check_member(const struct member *member, struct json_object *payload,
					bool *cut)
{
	struct json_object *value = json_get(payload, member->name);
	const char *text = json_str(value);
	size_t len = json_str_len(value), max = (size_t)member->max;
	int64_t number = json_get_int(payload, member->name, -1);
	switch (member->kind) {
	case KIND_TEXT:
		*cut |= len > max;
		return text ? json_new_text(text, text_cut(text, len, max)) : NULL;
	case KIND_WORD:
		return text && len > 0 && len <= max && strlen(text) == len
			       ? json_new_text(text, len)
			       : NULL;
	case KIND_FLAG:
		return json_object_is_type(value, json_type_boolean)
			       ? json_object_new_boolean(json_object_get_boolean(value))
			       : NULL;
	case KIND_NUMBER:
		return number >= 0 && number <= member->max ? json_object_new_int64(number) : NULL;
	}
	return NULL;
}

/* A new object with the members of the table, NULL when one of them is not as it should be. */
static struct json_object *check_members(const char *text, size_t len, const struct member *members,
					 size_t count, bool *cut)
{
	struct err ignored = ERR_INIT;
	AUTO_JSON *payload = json_parse(text, len, &ignored);
	AUTO_JSON *checked = json_object_new_object();
	if (!json_object_is_type(payload, json_type_object))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (members[i].optional && json_get(payload, members[i].name) == NULL)
			continue;
		struct json_object *value = check_member(&members[i], payload, cut);
		if (value == NULL)
			return NULL;
		json_add(checked, members[i].name, value);
	}
	return TAKE_PTR(checked);
}

/* --- what each frame does ------------------------------------------------------------------ */

/* What a frame brought: its members, and the bytes behind them. */
struct content {
	struct json_object *members;
	const char *bytes;
	size_t len;
};

static char *take_word(const struct content *content, const char *name)
{
	const char *text = json_get_str(content->members, name);
	return text ? xstrdup(text) : NULL;
}

static bool take_started(struct kernel_frames *frames, const struct content *content)
{
	(void)content;
	frames->run->started = true;
	return true;
}

static void replace(struct json_object **object, struct json_object *members)
{
	json_object_put(*object);
	*object = json_object_get(members);
}

static bool take_value(struct kernel_frames *frames, const struct content *content)
{
	replace(&frames->run->value, content->members);
	return true;
}

static bool take_error(struct kernel_frames *frames, const struct content *content)
{
	replace(&frames->run->error, content->members);
	return true;
}

static bool take_display(struct kernel_frames *frames, const struct content *content)
{
	struct kernel_run *run = frames->run;
	if (run->display_count == KERNEL_DISPLAYS_MAX)
		return false;
	struct json_object *text = json_get(content->members, "text");
	struct kernel_display *display = &run->displays[run->display_count++];
	display->mime = take_word(content, "mime");
	buf_append(&display->text, json_str(text), json_str_len(text));
	return true;
}

static bool take_file(struct kernel_frames *frames, const struct content *content)
{
	struct kernel_run *run = frames->run;
	if (run->file_count == KERNEL_FILES_MAX)
		return false;
	run->files[run->file_count++] = (struct kernel_file){
		.path = take_word(content, "path"),
		.about = take_word(content, "about"),
	};
	return true;
}

static bool take_note(struct kernel_frames *frames, const struct content *content)
{
	struct json_object *text = json_get(content->members, "text");
	struct buf *notes = &frames->run->notes;
	if (json_str_len(text) == 0)
		return true;
	if (notes->len + 1 + json_str_len(text) > NOTES_MAX)
		return false;
	if (notes->len > 0)
		buf_putc(notes, ' ');
	buf_append(notes, json_str(text), json_str_len(text));
	return true;
}

/* Whether the bytes are what mime says, as far as their beginning tells. */
static bool is_image(const char *mime, const char *bytes, size_t len)
{
	static const struct {
		const char *mime, *signature;
		size_t len;
	} types[] = {
		{"image/png", "\x89PNG\r\n\x1A\n", 8},
		{"image/jpeg", "\xFF\xD8\xFF", 3},
	};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(types[i].mime, mime) == 0)
			return len > types[i].len &&
			       memcmp(bytes, types[i].signature, types[i].len) == 0;
	return false;
}

static bool take_image(struct kernel_frames *frames, const struct content *content)
{
	struct kernel_run *run = frames->run;
	const char *mime = json_get_str(content->members, "mime");
	int64_t width = json_get_int(content->members, "width", 0);
	int64_t height = json_get_int(content->members, "height", 0);
	if (run->image_count == KERNEL_IMAGES_MAX || width < 1 || height < 1 ||
	    (int64_t)content->len > frames->image_bytes ||
	    !is_image(mime, content->bytes, content->len))
		return false;
	struct kernel_image *image = &run->images[run->image_count++];
	snprintf(image->mime, sizeof(image->mime), "%s", mime);
	image->width = (int)width;
	image->height = (int)height;
	image->scaled = json_get_bool(content->members, "scaled", false);
	image->file = take_word(content, "file");
	buf_append(&image->data, content->bytes, content->len);
	frames->image_bytes -= (int64_t)content->len;
	return true;
}

/* The place of a word in a list; -1 when it is not there. */
static int find_word(const char *const *words, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] && word && strcmp(words[i], word) == 0)
			return (int)i;
	return -1;
}

static bool take_end(struct kernel_frames *frames, const struct content *content)
{
	static const char *const ends[] = {
		[KERNEL_END_DONE] = "done", [KERNEL_END_EXCEPTION] = "exception",
		[KERNEL_END_EXIT] = "exit", [KERNEL_END_SIGNAL] = "signal",
		[KERNEL_END_LOST] = "lost",
	};
	static const char *const states[] = {
		[KERNEL_STATE_NONE] = "none",
		[KERNEL_STATE_KEPT] = "kept",
		[KERNEL_STATE_LOST] = "lost",
	};
	struct json_object *members = content->members;
	struct kernel_run *run = frames->run;
	const char *state_word = json_get_str(members, "state");
	int end = find_word(ends, ARRAY_LEN(ends), json_get_str(members, "end"));
	int state = find_word(states, ARRAY_LEN(states), state_word ? state_word : "none");
	int code = (int)json_get_int(members, "code", 0);
	int number = (int)json_get_int(members, "signal", 0);
	if (end < 0 || state < 0 || (end == KERNEL_END_SIGNAL && number == 0))
		return false;
	run->end = (enum kernel_end)end;
	run->state = (enum kernel_state)state;
	run->code = end == KERNEL_END_EXIT ? code : end == KERNEL_END_EXCEPTION ? 1 : 0;
	run->signal = end == KERNEL_END_SIGNAL ? number : 0;
	run->timed_out = json_get_bool(members, "timed_out", false);
	run->cpu_ms = json_get_int(members, "cpu_ms", 0);
	run->max_rss_kib = json_get_int(members, "max_rss_kib", 0);
	run->runs = json_get_int(members, "runs", 0);
	frames->ended = true;
	return true;
}

/* False: it is dropped. */
typedef bool take_frame(struct kernel_frames *frames, const struct content *content);

static const struct frame_type {
	const struct member *members; /* NULL: there is nothing to read */
	size_t count;
	take_frame *take;
	char letter;
	bool has_bytes; /* behind the first newline */
} types[] = {
	/* clang-format off */
	{NULL, 0, take_started, KERNEL_FRAME_STARTED, false},
	{value_members, ARRAY_LEN(value_members), take_value, KERNEL_FRAME_VALUE, false},
	{display_members, ARRAY_LEN(display_members), take_display, KERNEL_FRAME_DISPLAY, false},
	{image_members, ARRAY_LEN(image_members), take_image, KERNEL_FRAME_IMAGE, true},
	{file_members, ARRAY_LEN(file_members), take_file, KERNEL_FRAME_FILE, false},
	{error_members, ARRAY_LEN(error_members), take_error, KERNEL_FRAME_ERROR, false},
	{note_members, ARRAY_LEN(note_members), take_note, KERNEL_FRAME_NOTE, false},
	{end_members, ARRAY_LEN(end_members), take_end, KERNEL_FRAME_END, false},
	/* clang-format on */
};

static const struct frame_type *find_type(char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (types[i].letter == letter)
			return &types[i];
	return NULL;
}

/* False: it is dropped. */
static bool take_payload(struct kernel_frames *frames, const struct frame_type *type)
{
	struct content content = {.members = NULL};
	const char *text = buf_str(&frames->payload);
	size_t len = frames->payload.len;
	if (type->has_bytes) {
		const char *newline = memchr(text, '\n', len);
		if (newline == NULL)
			return false;
		content.bytes = newline + 1;
		content.len = len - (size_t)(content.bytes - text);
		len = (size_t)(newline - text);
	}
	AUTO_JSON *members = NULL;
	if (type->members) {
		members = check_members(text, len, type->members, type->count,
					&frames->run->left_out);
		if (members == NULL)
			return false;
	}
	content.members = members;
	return type->take(frames, &content);
}

/* --- packets ------------------------------------------------------------------------------- */

void kernel_frames_init(struct kernel_frames *frames, struct kernel_run *run, int64_t image_bytes)
{
	*frames = (struct kernel_frames){.run = run, .image_bytes = image_bytes};
}

void kernel_frames_finish(struct kernel_frames *frames)
{
	buf_finish(&frames->payload);
}

/* Forgets a frame that is not complete. */
static void drop(struct kernel_frames *frames)
{
	frames->run->left_out = true;
	frames->letter = 0;
	buf_finish(&frames->payload);
}

/* False: that is more than may come. */
static bool add_piece(struct kernel_frames *frames, const char *data, size_t len)
{
	bool is_end = frames->letter == KERNEL_FRAME_END;
	size_t max = is_end ? END_MAX : KERNEL_FRAME_MAX;
	size_t left = is_end ? END_MAX : KERNEL_TOTAL_MAX - frames->total;
	if (len > left || frames->payload.len + len > max)
		return false;
	frames->total += is_end ? 0 : len;
	buf_append(&frames->payload, data, len);
	return true;
}

void kernel_frames_add(struct kernel_frames *frames, const char *packet, size_t len)
{
	if (frames->ended)
		return;
	bool whole = len >= HEAD_LEN && len <= KERNEL_PACKET_MAX;
	if (!whole || (packet[1] != '0' && packet[1] != '1')) {
		drop(frames);
		return;
	}
	const struct frame_type *type = find_type(packet[0]);
	if (type == NULL)
		return;
	if (frames->letter != 0 && frames->letter != packet[0])
		drop(frames);
	if (frames->letter == 0)
		frames->dropping = false;
	frames->letter = packet[0];
	if (!frames->dropping && !add_piece(frames, packet + HEAD_LEN, len - HEAD_LEN)) {
		frames->dropping = true;
		buf_finish(&frames->payload);
	}
	if (packet[1] == '1')
		return;
	if (frames->dropping || !take_payload(frames, type))
		frames->run->left_out = true;
	frames->letter = 0;
	buf_finish(&frames->payload);
}

/* --- results ------------------------------------------------------------------------------- */

void kernel_run_init(struct kernel_run *run, size_t stdout_max, size_t stderr_max)
{
	*run = (struct kernel_run){.end = KERNEL_END_NONE};
	capture_init(&run->out, stdout_max);
	capture_init(&run->err, stderr_max);
}

void kernel_run_finish(struct kernel_run *run)
{
	capture_finish(&run->out);
	capture_finish(&run->err);
	for (size_t i = 0; i < run->image_count; i++) {
		buf_finish(&run->images[i].data);
		free(run->images[i].file);
	}
	for (size_t i = 0; i < run->display_count; i++) {
		free(run->displays[i].mime);
		buf_finish(&run->displays[i].text);
	}
	for (size_t i = 0; i < run->file_count; i++) {
		free(run->files[i].path);
		free(run->files[i].about);
	}
	buf_finish(&run->notes);
	json_object_put(run->value);
	json_object_put(run->error);
	*run = (struct kernel_run){.end = KERNEL_END_NONE};
}
