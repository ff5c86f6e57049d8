/* What a watcher says, and a run against peers that lie, stop in the middle or do not read. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "run/kernel_frame.h"
#include "run/sock.h"

#define PNG       "\x89PNG\r\n\x1A\n"
#define PNG_HEAD  "{\"mime\":\"image/png\",\"width\":3,\"height\":4,\"scaled\":false}\n"
#define END_DONE  "X0{\"end\":\"done\"}"
#define IMAGE_MAX 1000

/* --- the reader ---------------------------------------------------------------------------- */

static struct kernel_run run;
static struct kernel_frames frames;

static void begin(void)
{
	kernel_run_init(&run, 1000, 1000);
	kernel_frames_init(&frames, &run, IMAGE_MAX);
}

static void finish(void)
{
	kernel_frames_finish(&frames);
	kernel_run_finish(&run);
}

static void add(const char *packet)
{
	kernel_frames_add(&frames, packet, strlen(packet));
}

/* Bytes behind a head. */
static void add_bytes(const char *head, const void *bytes, size_t len)
{
	AUTO_BUF packet = BUF_INIT;
	buf_puts(&packet, head);
	buf_append(&packet, bytes, len);
	kernel_frames_add(&frames, packet.data, packet.len);
}

TEST(each_frame_arrives_in_its_place)
{
	begin();
	add("S0");
	add("V0{\"text\":\"42\",\"type\":\"int\",\"truncated\":false,\"more\":[1]}");
	add("D0{\"mime\":\"text/html\",\"text\":\"<b>\\u00e4</b>\"}");
	add("F0{\"path\":\"/workspace/a.csv\",\"about\":\"a table\"}");
	add("F0{\"path\":\"/workspace/b.csv\"}");
	add("E0{\"type\":\"ValueError\",\"message\":\"m\",\"traceback\":\"t\",\"hint\":null}");
	add("N0{\"text\":\"One.\"}");
	add("N0{\"text\":\"\"}");
	add("N0{\"text\":\"Two.\"}");
	add_bytes("I0" PNG_HEAD, PNG "rest\0", 13);
	ck_assert(run.started && !run.left_out && !frames.ended);
	ck_assert_str_eq(json_text(run.value, NULL),
			 "{\"text\":\"42\",\"type\":\"int\",\"truncated\":false}");
	ck_assert_str_eq(json_text(run.error, NULL),
			 "{\"type\":\"ValueError\",\"message\":\"m\",\"traceback\":\"t\"}");
	ck_assert_uint_eq(run.display_count, 1);
	ck_assert_str_eq(run.displays[0].mime, "text/html");
	ck_assert_str_eq(buf_str(&run.displays[0].text), "<b>\xC3\xA4</b>");
	ck_assert_uint_eq(run.file_count, 2);
	ck_assert_str_eq(run.files[0].path, "/workspace/a.csv");
	ck_assert_str_eq(run.files[0].about, "a table");
	ck_assert_ptr_null(run.files[1].about);
	ck_assert_str_eq(buf_str(&run.notes), "One. Two.");
	ck_assert_uint_eq(run.image_count, 1);
	ck_assert_str_eq(run.images[0].mime, "image/png");
	ck_assert_uint_eq(run.images[0].data.len, 13);
	ck_assert_int_eq(memcmp(run.images[0].data.data, PNG "rest\0", 13), 0);
	ck_assert(run.images[0].width == 3 && run.images[0].height == 4);
	ck_assert(!run.images[0].scaled && run.images[0].file == NULL);
	add("X0{\"end\":\"exception\",\"code\":7,\"signal\":0,\"timed_out\":true,\"state\":"
	    "\"kept\","
	    "\"cpu_ms\":12,\"max_rss_kib\":3456,\"runs\":2}");
	ck_assert(frames.ended && !run.left_out && run.timed_out);
	ck_assert_int_eq(run.end, KERNEL_END_EXCEPTION);
	ck_assert_int_eq(run.code, 1);
	ck_assert_int_eq(run.state, KERNEL_STATE_KEPT);
	ck_assert_int_eq(run.cpu_ms, 12);
	ck_assert_int_eq(run.max_rss_kib, 3456);
	ck_assert_int_eq(run.runs, 2);
	finish();
}
TEST_END

TEST(each_end_has_its_own_numbers)
{
	static const struct {
		const char *packet;
		enum kernel_end end;
		int code, signal;
	} cases[] = {
		{"X0{\"end\":\"done\",\"code\":5,\"signal\":6}", KERNEL_END_DONE, 0, 0},
		{"X0{\"end\":\"exit\",\"code\":5,\"signal\":6}", KERNEL_END_EXIT, 5, 0},
		{"X0{\"end\":\"exit\"}", KERNEL_END_EXIT, 0, 0},
		{"X0{\"end\":\"signal\",\"code\":5,\"signal\":11}", KERNEL_END_SIGNAL, 0, 11},
		{"X0{\"end\":\"lost\",\"state\":\"lost\"}", KERNEL_END_LOST, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin();
		add(cases[i].packet);
		ck_assert(frames.ended && !run.left_out);
		ck_assert_int_eq(run.end, cases[i].end);
		ck_assert_int_eq(run.code, cases[i].code);
		ck_assert_int_eq(run.signal, cases[i].signal);
		finish();
	}
}
TEST_END

TEST(what_is_not_as_it_should_be_is_dropped_and_that_is_said)
{
	static const char *const packets[] = {
		"",
		"V",
		"V2{}",
		"V0",
		"V0{",
		"V0null",
		"V0[]",
		"V0{\"text\":1,\"type\":\"int\",\"truncated\":false}",
		"V0{\"text\":\"1\",\"type\":\"int\"}",
		"V0{\"text\":\"1\",\"type\":\"int\",\"truncated\":0}",
		"V0{\"text\":\"\xFF\",\"type\":\"int\",\"truncated\":false}",
		"V0{\"text\":\"\\ud800\",\"type\":\"int\",\"truncated\":false}",
		"D0{\"mime\":\"\",\"text\":\"\"}",
		"D0{\"mime\":\"a\\u0000b\",\"text\":\"\"}",
		"D0{\"mime\":null,\"text\":\"\"}",
		"F0{\"path\":7}",
		"F0{\"path\":\"/a\",\"about\":7}",
		"E0{\"type\":\"E\",\"message\":\"m\"}",
		"N0{}",
		"I0",
		"I0{\"mime\":\"image/png\"}",
		"I0" PNG_HEAD,
		"I0" PNG_HEAD PNG,
		"I0" PNG_HEAD "<svg/>",
		"I0{\"mime\":\"image/png\",\"width\":3,\"height\":4,\"scaled\":false}" PNG "x",
		"I0{\"mime\":\"image/svg+xml\",\"width\":3,\"height\":4,\"scaled\":false}\n" PNG
		"x",
		"I0{\"mime\":\"image/jpeg\",\"width\":3,\"height\":4,\"scaled\":false}\n" PNG "x",
		"I0{\"mime\":\"image/png\",\"width\":0,\"height\":4,\"scaled\":false}\n" PNG "x",
		"I0{\"mime\":\"image/png\",\"width\":3,\"height\":-4,\"scaled\":false}\n" PNG "x",
		"I0{\"mime\":\"image/png\",\"width\":3,\"height\":1e9,\"scaled\":false}\n" PNG "x",
		"I0{\"mime\":\"image/png\",\"width\":3.5,\"height\":4,\"scaled\":false}\n" PNG "x",
		"X0{}",
		"X0{\"end\":\"won\"}",
		"X0{\"end\":\"done\",\"state\":\"good\"}",
		"X0{\"end\":\"exit\",\"code\":256}",
		"X0{\"end\":\"exit\",\"code\":-1}",
		"X0{\"end\":\"exit\",\"code\":\"1\"}",
		"X0{\"end\":\"signal\",\"signal\":0}",
		"X0{\"end\":\"signal\",\"signal\":65}",
		"X0{\"end\":\"done\",\"cpu_ms\":1e300}",
		"X0{\"end\":\"done\",\"runs\":18446744073709551615}",
		"X0{\"end\":\"done\",\"timed_out\":1}",
	};
	for (size_t i = 0; i < ARRAY_LEN(packets); i++) {
		begin();
		add(packets[i]);
		ck_assert_msg(run.left_out && !frames.ended, "%s", packets[i]);
		ck_assert_msg(run.value == NULL && run.error == NULL && run.notes.len == 0, "%s",
			      packets[i]);
		ck_assert_msg(run.image_count + run.display_count + run.file_count == 0, "%s",
			      packets[i]);
		ck_assert_int_eq(run.end, KERNEL_END_NONE);
		/* What comes next is read as if nothing had been. */
		add("V0{\"text\":\"1\",\"type\":\"int\",\"truncated\":false}");
		add(END_DONE);
		ck_assert_ptr_nonnull(run.value);
		ck_assert_int_eq(run.end, KERNEL_END_DONE);
		finish();
	}
}
TEST_END

TEST(a_letter_that_is_not_known_is_passed_over)
{
	begin();
	add("Z0{\"future\":true}");
	add("\1"
	    "1x");
	ck_assert(!run.left_out && !frames.ended);
	finish();
}
TEST_END

TEST(nothing_counts_after_the_end)
{
	begin();
	add(END_DONE);
	add("X0{\"end\":\"exit\",\"code\":3}");
	add("S0");
	add("V0{\"text\":\"1\",\"type\":\"int\",\"truncated\":false}");
	add("");
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert(run.value == NULL && !run.started && !run.left_out);
	finish();
}
TEST_END

TEST(a_frame_comes_in_pieces_of_any_size)
{
	static const char payload[] =
		"{\"text\":\"a long text\",\"type\":\"str\",\"truncated\":false}";
	for (size_t piece = 1; piece < sizeof(payload); piece++) {
		begin();
		for (size_t i = 0; i < sizeof(payload) - 1; i += piece) {
			size_t left = sizeof(payload) - 1 - i;
			bool last = left <= piece;
			add_bytes(last ? "V0" : "V1", payload + i, last ? left : piece);
		}
		ck_assert(!run.left_out);
		ck_assert_str_eq(json_text(run.value, NULL), payload);
		finish();
	}
}
TEST_END

TEST(a_frame_that_breaks_off_is_dropped_and_the_next_one_is_not)
{
	begin();
	add("V1{\"text\":\"1\",");
	add("N0{\"text\":\"Note.\"}");
	ck_assert(run.left_out && run.value == NULL);
	ck_assert_str_eq(buf_str(&run.notes), "Note.");
	add("N1{\"text\":");
	add("?");
	add("N0\"rest\"}");
	ck_assert_str_eq(buf_str(&run.notes), "Note.");
	finish();
}
TEST_END

TEST(a_packet_that_was_cut_off_is_dropped)
{
	AUTO_FREE char *packet = xmalloc(KERNEL_PACKET_MAX);
	begin();
	memset(packet, ' ', KERNEL_PACKET_MAX);
	memcpy(packet, "N0{\"text\":\"Note.\"}", 18);
	kernel_frames_add(&frames, packet, KERNEL_PACKET_MAX + 1);
	ck_assert(run.left_out && run.notes.len == 0);
	kernel_frames_add(&frames, packet, KERNEL_PACKET_MAX);
	ck_assert_str_eq(buf_str(&run.notes), "Note.");
	finish();
}
TEST_END

/* A display of so many bytes of text. */
static void add_display(size_t size)
{
	static const char head[] = "{\"mime\":\"text/plain\",\"text\":\"", tail[] = "\"}";
	AUTO_BUF payload = BUF_INIT;
	buf_puts(&payload, head);
	memset(buf_reserve(&payload, size), 'x', size);
	payload.len += size;
	buf_puts(&payload, tail);
	const size_t piece = KERNEL_PACKET_MAX - 2;
	for (size_t i = 0; i < payload.len; i += piece) {
		bool last = payload.len - i <= piece;
		add_bytes(last ? "D0" : "D1", payload.data + i, last ? payload.len - i : piece);
	}
}

TEST(memory_is_bounded_for_one_frame_and_for_all)
{
	begin();
	add_display(KERNEL_FRAME_MAX - 100);
	ck_assert(run.display_count == 1 && !run.left_out);
	ck_assert_uint_eq(run.displays[0].text.len, KERNEL_FRAME_MAX - 100);
	add_display(KERNEL_FRAME_MAX + 1);
	ck_assert(run.display_count == 1 && run.left_out);
	ck_assert_uint_le(frames.payload.cap, 4096);
	for (int i = 0; i < 100; i++)
		add_display(1 << 20);
	ck_assert_uint_le(frames.total, KERNEL_TOTAL_MAX);
	ck_assert_uint_lt(run.display_count, 16);
	/* The end is heard whatever came before it, but has a bound as well. */
	AUTO_FREE char *blanks = xmalloc(5000);
	memset(blanks, ' ', 5000);
	add_bytes("X0", blanks, 5000);
	ck_assert(!frames.ended);
	add(END_DONE);
	ck_assert(frames.ended);
	finish();
}
TEST_END

TEST(there_are_only_so_many_images_displays_files_and_notes)
{
	begin();
	for (int i = 0; i < 200; i++) {
		add_bytes("I0" PNG_HEAD, PNG "!", 9);
		add_display(10);
		add("F0{\"path\":\"/a\"}");
		add("N0{\"text\":\"A sentence of about sixty bytes, to be repeated many times.\"}");
	}
	ck_assert_uint_eq(run.image_count, KERNEL_IMAGES_MAX);
	ck_assert_uint_eq(run.display_count, KERNEL_DISPLAYS_MAX);
	ck_assert_uint_eq(run.file_count, KERNEL_FILES_MAX);
	ck_assert_uint_le(run.notes.len, 8192);
	ck_assert(run.left_out);
	finish();
}
TEST_END

TEST(images_together_have_no_more_bytes_than_was_asked_for)
{
	char image[400] = PNG;
	begin();
	for (int i = 0; i < 3; i++)
		add_bytes("I0" PNG_HEAD, image, sizeof(image));
	ck_assert_uint_eq(run.image_count, 2);
	ck_assert(run.left_out);
	add_bytes("I0" PNG_HEAD, image, 200);
	ck_assert_uint_eq(run.image_count, 3);
	finish();
}
TEST_END

TEST(long_texts_are_cut_between_characters)
{
	AUTO_BUF packet = BUF_INIT;
	begin();
	buf_puts(&packet, "E0{\"type\":\"E\",\"traceback\":\"\",\"message\":\"x");
	for (int i = 0; i < 10000; i++)
		buf_puts(&packet, "\xE4\xB8\xAD");
	buf_puts(&packet, "\"}");
	kernel_frames_add(&frames, packet.data, packet.len);
	struct json_object *message = json_get(run.error, "message");
	ck_assert_uint_le(json_str_len(message), 8192);
	ck_assert_uint_ge(json_str_len(message), 8190);
	ck_assert(text_is_utf8(json_str(message), json_str_len(message)));
	ck_assert(run.left_out);
	finish();
}
TEST_END

/* --- peers --------------------------------------------------------------------------------- */

/* A request as the other side gets it. */
struct got {
	int fd;
	char text[KERNEL_PACKET_MAX];
	int fds[8];
	size_t count;
};

static void receive(struct got *got)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(got->fds))];
	} space;
	struct iovec iov = {got->text, sizeof(got->text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space.bytes,
			     .msg_controllen = sizeof(space.bytes)};
	ssize_t n = recvmsg(got->fd, &msg, MSG_CMSG_CLOEXEC);
	got->text[n > 0 ? n : 0] = '\0';
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	got->count = c ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (c)
		memcpy(got->fds, CMSG_DATA(c), got->count * sizeof(int));
}

static void say(const struct got *got, const char *packet)
{
	ssize_t n = send(got->fd, packet, strlen(packet), MSG_NOSIGNAL);
	(void)n;
}

static void print(const struct got *got, int which, const char *text)
{
	ssize_t n = write(got->fds[which], text, strlen(text));
	(void)n;
}

typedef void act(struct got *got);

static struct kernel_request request = {
	.code = "print(1)\n",
	.code_len = 9,
	.cwd = "/workspace",
	.save_dir = "/workspace/.python/x",
	.timeout_ms = 1000,
	.image_bytes = IMAGE_MAX,
	.idle_ms = 1000,
};
static struct err err;
static bool reads_requests = true;
static int ticks, tick_limit, tick_takes_ms;

static bool tick(void *ctx)
{
	(void)ctx;
	clock_sleep_ms(tick_takes_ms);
	return ++ticks < tick_limit;
}

/* Runs against a process of its own; run and err have what came of it. */
static bool run_against(act *peer, const struct runtime_box *box, const char *new_session_id)
{
	int ends[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		static struct got got;
		got.fd = ends[1];
		close(ends[0]);
		if (reads_requests)
			receive(&got);
		peer(&got);
		_exit(0);
	}
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	kernel_run_init(&run, 1000, 1000);
	err = (struct err)ERR_INIT;
	bool ok = kernel_run(ends[0], box, &request, new_session_id, tick_limit ? tick : NULL, NULL,
			     &run, &err);
	close(ends[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ok;
}

static const char *text_of(const struct capture *capture)
{
	static struct buf text;
	buf_clear(&text);
	capture_text(capture, &text);
	return buf_str(&text);
}

static void tell_what_it_got(struct got *got)
{
	char code[20] = "", seals[100];
	ssize_t n = read(got->fds[0], code, sizeof(code) - 1);
	say(got, "S0");
	print(got, 1, got->text);
	snprintf(seals, sizeof(seals), "%zu descriptors, %zd bytes: %s write: %d", got->count, n,
		 code, (int)write(got->fds[0], "x", 1));
	print(got, 2, seals);
	say(got, END_DONE);
}

TEST(a_request_has_all_that_is_needed)
{
	static const char *const inputs[] = {"a.csv", "b\xFF", NULL};
	request.inputs = inputs;
	ck_ok(run_against(tell_what_it_got, NULL, NULL), err);
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert(run.started && !run.cancelled && !run.left_out);
	ck_assert_str_eq(
		text_of(&run.out),
		"{\"cwd\":\"/workspace\",\"timeout_ms\":1000,\"grace_ms\":2000,"
		"\"image_bytes\":1000,\"save_dir\":\"/workspace/.python/x\",\"guard\":false,"
		"\"inputs\":[\"a.csv\",\"b\xEF\xBF\xBD\"],\"session\":false,\"idle_ms\":1000}");
	ck_assert_str_eq(text_of(&run.err), "3 descriptors, 9 bytes: print(1)\n write: -1");
	kernel_run_finish(&run);
}
TEST_END

static void keep_the_session(struct got *got)
{
	say(got, "S0");
	close(got->fds[1]);
	close(got->fds[2]);
	say(got, strstr(got->text, "\"session\":true") && got->count == 4
			 ? "X0{\"end\":\"done\",\"state\":\"kept\"}"
			 : "X0{\"end\":\"exit\",\"code\":1}");
}

static void lose_the_session(struct got *got)
{
	say(got, "S0");
	say(got, "X0{\"end\":\"signal\",\"signal\":9,\"state\":\"lost\"}");
}

static int count_sockets(const char *dir)
{
	AUTO_FREE char *path = xasprintf("%s/py-0123.sock", dir);
	AUTO_FREE char *temp = xasprintf("%s/.py-0123.sock", dir);
	return (access(path, F_OK) == 0) + (access(temp, F_OK) == 0);
}

TEST(a_session_has_a_socket_for_as_long_as_it_is_kept)
{
	char *dir = unit_tempdir();
	struct runtime_box box = {.run_dir_fd = open(dir, O_DIRECTORY | O_CLOEXEC)};
	ck_ok(run_against(keep_the_session, &box, "0123"), err);
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert_int_eq(run.state, KERNEL_STATE_KEPT);
	ck_assert_int_eq(count_sockets(dir), 1);
	kernel_run_finish(&run);
	/* Its process is gone by now. */
	ck_assert_int_eq(kernel_connect_session(&box, "0123", &err), -1);
	ck_assert_int_eq(err.code, ERR_LOST);
	kernel_end_session(&box, "0123");
	ck_assert_int_eq(count_sockets(dir), 0);
	ck_ok(run_against(lose_the_session, &box, "0123"), err);
	ck_assert_int_eq(run.end, KERNEL_END_SIGNAL);
	ck_assert_int_eq(count_sockets(dir), 0);
	kernel_run_finish(&run);
	close(box.run_dir_fd);
	unit_tempdir_remove(dir);
}
TEST_END

static void end_at_once(struct got *got)
{
	(void)got;
}

static void say_notes_and_end(struct got *got)
{
	say(got, "N0{\"text\":\"I did not start.\"}");
}

TEST(an_end_before_the_code_was_taken_means_that_nothing_was_run)
{
	static act *const peers[] = {end_at_once, say_notes_and_end};
	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		ck_assert(!run_against(peers[i], NULL, NULL));
		ck_assert_int_eq(err.code, ERR_LOST);
		ck_assert_ptr_nonnull(strstr(err.msg, "before the code was run"));
		kernel_run_finish(&run);
	}
	/* A peer that was gone before. */
	int ends[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	close(ends[1]);
	kernel_run_init(&run, 1000, 1000);
	ck_assert(!kernel_run(ends[0], NULL, &request, NULL, NULL, NULL, &run, &err));
	ck_assert_int_eq(err.code, ERR_LOST);
	kernel_run_finish(&run);
}
TEST_END

static void start_and_end(struct got *got)
{
	say(got, "S0");
	print(got, 1, "said so far");
}

static void end_in_a_frame(struct got *got)
{
	start_and_end(got);
	say(got, "V1{\"text\":");
}

static void end_with_a_bad_end(struct got *got)
{
	start_and_end(got);
	say(got, "X0{\"end\":\"nonsense\"}");
}

TEST(an_end_that_was_not_seen_is_a_lost_one_and_output_is_kept)
{
	static act *const peers[] = {start_and_end, end_in_a_frame, end_with_a_bad_end};
	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		ck_ok(run_against(peers[i], NULL, NULL), err);
		ck_assert_int_eq(run.end, KERNEL_END_LOST);
		ck_assert(run.started && !run.cancelled);
		ck_assert_str_eq(text_of(&run.out), "said so far");
		kernel_run_finish(&run);
	}
}
TEST_END

static void end_with_an_exception(struct got *got)
{
	say(got, "S0");
	say(got, "X0{\"end\":\"exception\"}");
}

TEST(an_exception_always_has_an_error)
{
	ck_ok(run_against(end_with_an_exception, NULL, NULL), err);
	ck_assert_int_eq(run.end, KERNEL_END_EXCEPTION);
	ck_assert_str_eq(json_get_str(run.error, "type"), "Exception");
	kernel_run_finish(&run);
}
TEST_END

static void hear_the_cancel(struct got *got)
{
	char c = 0;
	say(got, "S0");
	while (recv(got->fd, &c, 1, 0) == 1 && c != 'c')
		;
	print(got, 2, "heard");
	say(got, "X0{\"end\":\"exit\",\"code\":9}");
}

TEST(when_the_caller_does_not_want_it_any_more_the_end_is_asked_for)
{
	tick_limit = 2;
	request.timeout_ms = 60000;
	ck_ok(run_against(hear_the_cancel, NULL, NULL), err);
	ck_assert(run.cancelled);
	ck_assert_int_eq(run.end, KERNEL_END_EXIT);
	ck_assert_int_eq(run.code, 9);
	ck_assert_str_eq(text_of(&run.err), "heard");
	ck_assert_int_eq(ticks, 2);
	ck_assert_int_ge(run.duration_ms, 900);
	ck_assert_int_lt(run.duration_ms, 3000);
	kernel_run_finish(&run);
}
TEST_END

/* A clock for what takes long: fifty times as fast. Waits for a descriptor are not, so something
 * has to happen on one now and then. */
static int64_t fast_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return 50 * (now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static const struct clock_source fast_clock = {
	.wall_ms = fast_ms, .mono_ms = fast_ms, .boot_ms = fast_ms, .boot_id = ""};

static void never_end(struct got *got)
{
	say(got, "S0");
	for (;;)
		print(got, 1, "and so on ");
}

TEST(a_peer_that_never_ends_is_given_up)
{
	clock_use(&fast_clock);
	request.timeout_ms = 5000;
	ck_ok(run_against(never_end, NULL, NULL), err);
	ck_assert_int_eq(run.end, KERNEL_END_LOST);
	ck_assert(run.cancelled);
	ck_assert_int_ge(run.duration_ms, 5000 + RUNTIME_GRACE_MS);
	ck_assert_int_lt(run.duration_ms, 100000);
	ck_assert_int_gt(run.out.total, 10000);
	kernel_run_finish(&run);
}
TEST_END

static void never_start(struct got *got)
{
	for (;;) {
		say(got, "N0{\"text\":\"Wait.\"}");
		clock_sleep_ms(5);
	}
}

TEST(a_peer_that_never_takes_the_code_is_given_up_and_nothing_was_run)
{
	clock_use(&fast_clock);
	ck_assert(!run_against(never_start, NULL, NULL));
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.msg, "did not take the code"));
	kernel_run_finish(&run);
}
TEST_END

TEST(a_queue_that_is_full_is_waited_for)
{
	char *dir = unit_tempdir();
	struct runtime_box box = {.run_dir_fd = open(dir, O_DIRECTORY | O_CLOEXEC)};
	err = (struct err)ERR_INIT;
	int fd = sock_bind(box.run_dir_fd, KERNEL_SOCKET, SOCK_SEQPACKET, 1, &err);
	ck_assert_int_ge(fd, 0);
	while (sock_connect(box.run_dir_fd, KERNEL_SOCKET, SOCK_SEQPACKET) >= 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
	pid_t pid = fork();
	if (pid == 0) {
		clock_sleep_ms(100);
		accept(fd, NULL, NULL);
		pause();
	}
	int64_t start_ms = clock_mono_ms();
	ck_assert_int_ge(kernel_connect(&box, &err), 0);
	ck_assert_int_ge(clock_mono_ms() - start_ms, 50);
	/* But not for ever. */
	clock_use(&fast_clock);
	ck_assert_int_eq(kernel_connect(&box, &err), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	close(box.run_dir_fd);
	unit_tempdir_remove(dir);
}
TEST_END

static void flood(struct got *got)
{
	static char packet[60000] = "D1";
	say(got, "S0");
	for (int i = 0; i < 2000; i++)
		if (send(got->fd, packet, sizeof(packet), MSG_NOSIGNAL) < 0)
			_exit(1);
	say(got, END_DONE);
	for (;;)
		say(got, "S0");
}

TEST(a_flood_of_frames_ends_with_the_end)
{
	ck_ok(run_against(flood, NULL, NULL), err);
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert(run.left_out);
	kernel_run_finish(&run);
}
TEST_END

static void leave_the_request_unread(struct got *got)
{
	say(got, "S0");
	clock_sleep_ms(700);
	say(got, "N0{\"text\":\"Hear me.\"}");
	say(got, END_DONE);
}

TEST(an_end_is_heard_though_the_peer_left_something_unread)
{
	/* It ends while nobody looks: an error of the socket comes before what is still in it. */
	reads_requests = false;
	tick_limit = 100;
	tick_takes_ms = 600;
	ck_ok(run_against(leave_the_request_unread, NULL, NULL), err);
	ck_assert_int_eq(ticks, 1);
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert_str_eq(buf_str(&run.notes), "Hear me.");
	kernel_run_finish(&run);
}
TEST_END

static void leave_a_child_with_the_pipes(struct got *got)
{
	say(got, "S0");
	print(got, 1, "early ");
	if (fork() == 0) {
		close(got->fd);
		clock_sleep_ms(40);
		print(got, 1, "late");
		clock_sleep_ms(5000);
		_exit(0);
	}
	say(got, END_DONE);
}

TEST(a_child_that_keeps_the_pipes_does_not_keep_the_run)
{
	int64_t start_ms = clock_mono_ms();
	ck_ok(run_against(leave_a_child_with_the_pipes, NULL, NULL), err);
	ck_assert_int_lt(clock_mono_ms() - start_ms, 2000);
	ck_assert_str_eq(text_of(&run.out), "early late");
	kernel_run_finish(&run);
}
TEST_END

static void print_a_lot(struct got *got)
{
	static char block[1 << 20];
	memset(block, 'x', sizeof(block));
	say(got, "S0");
	for (int i = 0; i < 200; i++)
		for (size_t sent = 0; sent < sizeof(block);) {
			ssize_t n = write(got->fds[1], block + sent, sizeof(block) - sent);
			if (n < 0)
				_exit(1);
			sent += (size_t)n;
		}
	print(got, 1, "end");
	say(got, END_DONE);
}

TEST(two_hundred_megabytes_of_output_are_counted_and_bounded)
{
	ck_ok(run_against(print_a_lot, NULL, NULL), err);
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert_int_eq(run.out.total, (200LL << 20) + 3);
	const char *text = text_of(&run.out);
	ck_assert_str_eq(text + strlen(text) - 3, "end");
	ck_assert_uint_lt(strlen(text), 1200);
	kernel_run_finish(&run);
}
TEST_END

TEST(a_request_that_is_too_large_is_refused)
{
	AUTO_FREE char *name = xmalloc(KERNEL_PACKET_MAX + 1);
	memset(name, 'n', KERNEL_PACKET_MAX);
	name[KERNEL_PACKET_MAX] = '\0';
	const char *const inputs[] = {name, NULL};
	request.inputs = inputs;
	ck_assert(!run_against(end_at_once, NULL, NULL));
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	kernel_run_finish(&run);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		each_frame_arrives_in_its_place,
		each_end_has_its_own_numbers,
		what_is_not_as_it_should_be_is_dropped_and_that_is_said,
		a_letter_that_is_not_known_is_passed_over,
		nothing_counts_after_the_end,
		a_frame_comes_in_pieces_of_any_size,
		a_frame_that_breaks_off_is_dropped_and_the_next_one_is_not,
		a_packet_that_was_cut_off_is_dropped,
		memory_is_bounded_for_one_frame_and_for_all,
		there_are_only_so_many_images_displays_files_and_notes,
		images_together_have_no_more_bytes_than_was_asked_for,
		long_texts_are_cut_between_characters,
		a_request_has_all_that_is_needed,
		a_session_has_a_socket_for_as_long_as_it_is_kept,
		an_end_before_the_code_was_taken_means_that_nothing_was_run,
		an_end_that_was_not_seen_is_a_lost_one_and_output_is_kept,
		an_exception_always_has_an_error,
		when_the_caller_does_not_want_it_any_more_the_end_is_asked_for,
		a_peer_that_never_ends_is_given_up,
		a_peer_that_never_takes_the_code_is_given_up_and_nothing_was_run,
		a_queue_that_is_full_is_waited_for,
		a_flood_of_frames_ends_with_the_end,
		an_end_is_heard_though_the_peer_left_something_unread,
		a_child_that_keeps_the_pipes_does_not_keep_the_run,
		two_hundred_megabytes_of_output_are_counted_and_bounded,
		a_request_that_is_too_large_is_refused,
	};
	return unit_run("kernel_frame", tests, ARRAY_LEN(tests));
}
