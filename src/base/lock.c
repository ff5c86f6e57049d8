/* Open-file-description locks over whole files. */
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"

#define RETRY_MIN_MS 1 /* first pause between two tries; doubles up to the second */
#define RETRY_MAX_MS 10

int lock_open(int dirfd, const char *name, struct err *err)
{
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		err_sys(err, "open lock %s", name);
	return fd;
}

static struct flock whole_file(short type)
{
	struct flock lock;
	memset(&lock, 0, sizeof(lock)); /* l_pid must be 0 for F_OFD_* */
	lock.l_type = type;
	lock.l_whence = SEEK_SET;
	return lock;
}

bool lock_take(int fd, enum lock_mode mode, int64_t timeout_ms, struct err *err)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	int64_t pause = RETRY_MIN_MS;
	for (;;) {
		struct flock lock = whole_file(mode == LOCK_SHARED ? F_RDLCK : F_WRLCK);
		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return true;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return err_sys(err, "lock");
		if (clock_mono_ms() >= deadline)
			return err_set(err, ERR_BUSY,
				       "it is in use at the moment; nothing was changed");
		clock_sleep_ms(pause);
		pause = pause * 2 < RETRY_MAX_MS ? pause * 2 : RETRY_MAX_MS;
	}
}

void lock_release(int fd)
{
	struct flock lock = whole_file(F_UNLCK);
	fcntl(fd, F_OFD_SETLK, &lock);
}

/* Whether a lock of that type would have to wait. */
static int has_conflict(int fd, short type)
{
	struct flock lock = whole_file(type);
	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		return -1;
	return lock.l_type != F_UNLCK;
}

int lock_is_held(int fd)
{
	return has_conflict(fd, F_WRLCK);
}

int lock_is_exclusive(int fd)
{
	return has_conflict(fd, F_RDLCK);
}
