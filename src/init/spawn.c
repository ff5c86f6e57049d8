/* Starting the command: everything between fork and exec. */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
/* The kernel's out-of-memory killer takes a command long before it takes PID 1 (0). */
#define OOM_SCORE "500"

/* What the child tells over the status pipe; nothing at all once exec went through. */
struct failure {
	enum wire_step step;
	int error;
};

static noreturn void fail(int status_fd, enum wire_step step)
{
	struct failure failure = {step, errno};
	ssize_t n = write(status_fd, &failure, sizeof(failure));
	_exit(n == (ssize_t)sizeof(failure) ? 127 : 126);
}

static bool set_limit(int resource, int64_t value)
{
	struct rlimit limit;
	if (value < 0)
		return true;
	if (getrlimit(resource, &limit) < 0)
		return false;
	if (limit.rlim_max == RLIM_INFINITY || (rlim_t)value < limit.rlim_max)
		limit.rlim_max = (rlim_t)value;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) == 0;
}

static bool set_limits(const int64_t limits[WIRE_LIMIT__MAX])
{
	static const int resources[WIRE_LIMIT__MAX] = {
		[WIRE_LIMIT_PROCESSES] = RLIMIT_NPROC,
		[WIRE_LIMIT_OPEN_FILES] = RLIMIT_NOFILE,
		[WIRE_LIMIT_FILE_BYTES] = RLIMIT_FSIZE,
		[WIRE_LIMIT_DATA_BYTES] = RLIMIT_DATA,
	};
	for (int i = 0; i < WIRE_LIMIT__MAX; i++)
		if (!set_limit(resources[i], limits[i]))
			return false;
	return set_limit(RLIMIT_CORE, 0);
}

/* The file belongs to the real root for as long as this process cannot be dumped. What a command
 * could then read here, for the moment until exec, is a copy of PID 1's memory without any
 * secret. */
static void raise_oom_score(void)
{
	prctl(PR_SET_DUMPABLE, 1);
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = write(fd, OOM_SCORE, sizeof(OOM_SCORE) - 1);
	(void)n; /* without it the command is merely as likely a victim as PID 1 */
	close(fd);
}

static const char *search_path(const char *const *env)
{
	for (; *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return DEFAULT_PATH;
}

/* execve wants pointers without const but does not write through them. */
static void try_exec(const char *file, const struct wire_request *request)
{
	execve(file, (char *const *)request->argv, (char *const *)request->env);
}

/* As execvp, but with the request's PATH, and never by way of a shell. Returns on failure with
 * errno: EACCES when a file was there but could not be run, else ENOENT. */
static void exec_in_path(const struct wire_request *request)
{
	const char *name = request->argv[0];
	char file[PATH_MAX];
	int error = ENOENT;
	const char *path = search_path(request->env);
	while (path) {
		const char *end = strchrnul(path, ':');
		size_t dir_len = (size_t)(end - path), name_len = strlen(name);
		if (dir_len > 0 && dir_len + name_len + 2 <= sizeof(file)) {
			memcpy(file, path, dir_len);
			file[dir_len] = '/';
			memcpy(file + dir_len + 1, name, name_len + 1);
			try_exec(file, request);
			if (errno == EACCES)
				error = EACCES;
			else if (errno != ENOENT && errno != ENOTDIR)
				return;
		}
		path = *end ? end + 1 : NULL;
	}
	errno = error;
}

static noreturn void run_command(const struct wire_request *request, const int fds[WIRE_FDS],
				 int status_fd)
{
	setsid();
	umask(022);
	for (int i = 0; i < WIRE_FDS; i++)
		if (dup2(fds[i], i) < 0)
			fail(status_fd, WIRE_STEP_SETUP);
	raise_oom_score();
	if (!set_limits(request->limits))
		fail(status_fd, WIRE_STEP_SETUP);
	if (chdir(request->cwd) < 0)
		fail(status_fd, WIRE_STEP_CWD);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (strchr(request->argv[0], '/'))
		try_exec(request->argv[0], request);
	else
		exec_in_path(request);
	fail(status_fd, WIRE_STEP_EXEC);
}

pid_t spawn_command(const struct wire_request *request, const int fds[WIRE_FDS], int *status_fd)
{
	int pipe_fds[2];
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		run_command(request, fds, pipe_fds[1]);
	int error = errno;
	close(pipe_fds[1]);
	*status_fd = pipe_fds[0];
	errno = error;
	return pid;
}

bool spawn_result(int status_fd, struct wire_reply *reply)
{
	struct failure failure;
	ssize_t n;
	do
		n = read(status_fd, &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(failure)) {
		reply->step = failure.step;
		reply->error = failure.error;
		return false;
	}
	return true;
}
