/* A path in an address would be cut at 108 bytes; one by way of the directory's descriptor is
 * short. */
#include "run/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TEMP_MAX 64 /* a temporary name; names are ours */

static struct sockaddr_un address_of(int dirfd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dirfd, name);
	return address;
}

int sock_bind(int dirfd, const char *name, int type, int backlog, struct err *err)
{
	char temp[TEMP_MAX];
	snprintf(temp, sizeof(temp), ".%s", name);
	AUTO_FD fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = address_of(dirfd, temp);
	/* Left by one that was killed; the caller's lock says that nobody else is at it. */
	unlinkat(dirfd, temp, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    (backlog > 0 && listen(fd, backlog) < 0) || renameat(dirfd, temp, dirfd, name) < 0) {
		err_sys(err, "bind %s", name);
		return -1;
	}
	return TAKE_FD(fd);
}

int sock_connect(int dirfd, const char *name, int type)
{
	AUTO_FD fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = address_of(dirfd, name);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return TAKE_FD(fd);
}
