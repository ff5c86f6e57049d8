/*
 * A head and two buffers per stream, in the byte order of the machine: the file never leaves it.
 * The state of the automaton is not stored, since the number of a state means nothing to another
 * process. The held bytes lead there again; what is settled about them already, which depends on
 * bytes that are gone, is stored.
 */
#include "run/handover.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fs.h"

/* Another version of the program in between must not read what it does not know. */
#define FORMAT   UINT64_C(0x53424f5848414e01)
#define FILE_MAX ((size_t)1024 * 1024) /* two streams hold at most 16 KiB and 16 bytes for each */

struct head {
	uint64_t format;
	uint32_t in_run;
	uint32_t held_len, covered_len; /* what follows */
	uint32_t reserved;
};

static void put_stream(const struct mask_stream *stream, struct buf *out)
{
	const struct head head = {.format = FORMAT,
				  .in_run = stream->in_run,
				  .held_len = (uint32_t)stream->held.len,
				  .covered_len = (uint32_t)stream->covered.len};
	buf_append(out, &head, sizeof(head));
	buf_append(out, buf_str(&stream->held), stream->held.len);
	buf_append(out, buf_str(&stream->covered), stream->covered.len);
}

int handover_save(const struct mask_stream streams[RECORD_STREAMS], struct err *err)
{
	AUTO_BUF data = BUF_INIT;
	for (int i = 0; i < RECORD_STREAMS; i++)
		put_stream(&streams[i], &data);
	AUTO_FD fd = memfd_create("held", MFD_CLOEXEC);
	if (fd < 0) {
		err_sys(err, "memory file for a hand-over");
		return -1;
	}
	if (!fs_write_all(fd, data.data, data.len, err))
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0) {
		err_sys(err, "rewind a hand-over");
		return -1;
	}
	return TAKE_FD(fd);
}

/* Takes the next len bytes of the file. */
static const char *take(struct buf *data, size_t *pos, size_t len)
{
	if (data->len - *pos < len)
		return NULL;
	const char *at = buf_str(data) + *pos;
	*pos += len;
	return at;
}

/* False when the file is damaged or the mask is not the one that the bytes were held for. */
static bool load_stream(struct buf *data, size_t *pos, struct mask_stream *stream)
{
	struct head head;
	AUTO_BUF settled = BUF_INIT;
	const char *at = take(data, pos, sizeof(head));
	if (at == NULL)
		return false;
	memcpy(&head, at, sizeof(head));
	const char *held = take(data, pos, head.held_len);
	const char *covered = held == NULL ? NULL : take(data, pos, head.covered_len);
	if (head.format != FORMAT || covered == NULL)
		return false;
	mask_feed(stream, held, head.held_len, &settled);
	if (settled.len > 0 || stream->held.len != head.held_len)
		return false;
	buf_clear(&stream->covered);
	buf_append(&stream->covered, covered, head.covered_len);
	stream->in_run = head.in_run != 0;
	return true;
}

bool handover_load(int fd, const struct mask *mask, struct mask_stream streams[RECORD_STREAMS],
		   struct err *err)
{
	AUTO_BUF data = BUF_INIT;
	size_t pos = 0;
	for (int i = 0; i < RECORD_STREAMS; i++)
		mask_stream_init(&streams[i], mask);
	if (!fs_read_all(fd, FILE_MAX, &data, err))
		return false;
	for (int i = 0; i < RECORD_STREAMS; i++)
		if (!load_stream(&data, &pos, &streams[i]))
			return err_set(err, ERR_INTERNAL, "the hand-over of a stream is damaged");
	return true;
}
