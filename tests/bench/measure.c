/*
 * The stop-watch of contrib/bench. Prints one number.
 *
 *	measure spawn COUNT PROGRAM [ARGUMENT...]   median µs to start a program and see it end
 *	measure http COUNT PORT TIMED [AFTER]       median µs of a raw HTTP request (a file) and its
 *	                                            answer; AFTER is sent behind each, not timed
 *	measure load SECONDS CONNECTIONS PORT FILE  answers per second
 *
 * "@@@@@@" in a request is replaced by the number of the round. Any answer but 200, and any tool
 * error, ends the program: a fast failure is no result.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX (64 * 1024)
#define ANSWER_MAX  (1024 * 1024)

extern char **environ;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "measure: %s\n", what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void print_median(int64_t *ns, int count)
{
	qsort(ns, (size_t)count, sizeof(*ns), compare);
	printf("%.1f\n", (double)ns[count / 2] / 1000);
}

static int measure_spawn(int count, char **argv)
{
	int64_t *ns = calloc((size_t)count, sizeof(*ns));
	for (int i = 0; i < count; i++) {
		int status;
		pid_t pid;
		int64_t start = now_ns();
		if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
			die("cannot start the program");
		if (waitpid(pid, &status, 0) != pid || status != 0)
			die("the program failed");
		ns[i] = now_ns() - start;
	}
	print_median(ns, count);
	return 0;
}

struct client {
	int fd, port;
	char *answer;
};

static void client_connect(struct client *client)
{
	int on = 1;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)client->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0 ||
	    connect(client->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		die("cannot connect");
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Length of the whole answer once its header is there; 0 before. */
static size_t answer_length(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");
	const char *length = strcasestr(answer, "\r\ncontent-length:");
	if (end == NULL)
		return 0;
	if (length == NULL || length > end)
		die("an answer without a length");
	return (size_t)(end + 4 - answer) + strtoul(length + 17, NULL, 10);
}

/* Sends one request and reads its answer; reconnects first when the server closed. */
static int64_t exchange(struct client *client, const char *request)
{
	size_t have = 0, want = 0;
	char probe;
	if (client->fd >= 0 && recv(client->fd, &probe, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
		close(client->fd);
		client->fd = -1;
	}
	if (client->fd < 0)
		client_connect(client);
	int64_t start = now_ns();
	if (write(client->fd, request, strlen(request)) != (ssize_t)strlen(request))
		die("cannot send");
	while (want == 0 || have < want) {
		ssize_t n = read(client->fd, client->answer + have, ANSWER_MAX - have - 1);
		if (n <= 0)
			die("the answer ended early");
		have += (size_t)n;
		client->answer[have] = '\0';
		if (want == 0)
			want = answer_length(client->answer);
	}
	int64_t spent = now_ns() - start;
	if (strncmp(client->answer, "HTTP/1.1 200", 12) != 0 ||
	    strstr(client->answer, "\"isError\":true") != NULL)
		die(client->answer);
	if (strcasestr(client->answer, "\r\nconnection: close") != NULL) {
		close(client->fd);
		client->fd = -1;
	}
	return spent;
}

static char *read_request(const char *path)
{
	char *request = calloc(1, REQUEST_MAX);
	FILE *file = fopen(path, "r");
	if (file == NULL || fread(request, 1, REQUEST_MAX - 1, file) == 0)
		die("cannot read the request");
	fclose(file);
	return request;
}

static void number(char *request, int round)
{
	static const char mark[] = "@@@@@@";
	char digits[16];
	char *place = strstr(request, mark);
	if (place == NULL)
		return;
	snprintf(digits, sizeof(digits), "%06d", round % 1000000);
	memcpy(place, digits, strlen(mark));
}

static int measure_http(int count, int port, const char *timed, const char *after)
{
	int64_t *ns = calloc((size_t)count, sizeof(*ns));
	struct client client = {.fd = -1, .port = port, .answer = malloc(ANSWER_MAX)};
	for (int i = 0; i < count; i++) {
		char *request = read_request(timed);
		number(request, i);
		ns[i] = exchange(&client, request);
		free(request);
		if (after == NULL)
			continue;
		request = read_request(after);
		number(request, i);
		exchange(&client, request);
		free(request);
	}
	print_median(ns, count);
	return 0;
}

static int measure_load(int seconds, int connections, int port, const char *path)
{
	int64_t *done = mmap(NULL, (size_t)connections * sizeof(*done), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t start = now_ns(), sum = 0;
	for (int i = 0; i < connections; i++) {
		if (fork() != 0)
			continue;
		struct client client = {.fd = -1, .port = port, .answer = malloc(ANSWER_MAX)};
		char *request = read_request(path);
		for (; now_ns() - start < (int64_t)seconds * 1000000000; done[i]++)
			exchange(&client, request);
		_exit(0);
	}
	for (int status; wait(&status) > 0;)
		if (status != 0)
			return 1;
	double spent = (double)(now_ns() - start) / 1e9;
	for (int i = 0; i < connections; i++)
		sum += done[i];
	printf("%.0f\n", (double)sum / spent);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "spawn") == 0)
		return measure_spawn(atoi(argv[2]), argv + 3);
	if ((argc == 5 || argc == 6) && strcmp(argv[1], "http") == 0)
		return measure_http(atoi(argv[2]), atoi(argv[3]), argv[4], argv[5]);
	if (argc == 6 && strcmp(argv[1], "load") == 0)
		return measure_load(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), argv[5]);
	die("see the head of measure.c");
}
