/* Pipes and sealed memory files. */
#include "run/pipe.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/fs.h"

/* The flag belongs to each end's own open file. */
bool pipe_make(int *read_fd, int *write_fd, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	*read_fd = ends[0];
	*write_fd = ends[1];
	if (fcntl(*read_fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "pipe flags");
	return true;
}

int pipe_sealed(const char *name, const char *data, size_t len, struct err *err)
{
	AUTO_FD memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory < 0) {
		err_sys(err, "memfd_create");
		return -1;
	}
	if (!fs_write_all(memory, data, len, err))
		return -1;
	fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err_sys(err, "open a memory file");
	return fd;
}
