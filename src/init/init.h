/*
 * PID 1 of a sandbox. Three kinds of process, all from this one program:
 *
 *	PID 1     listens, accepts, forks a keeper per connection, reaps (serve.c)
 *	keeper    reads one request, starts the command, enforces its timeout, reports its end
 *	          (keeper.c); it is the subreaper of everything the command starts
 *	command   set up in spawn.c, then another program
 *
 * PID 1 never exits, waits for a single peer or allocates on account of a request; whatever can
 * hang or fail does so in a keeper. Everything inside has the same uid, so a command can kill or
 * stop its keeper: PID 1 sees that and ends all processes, because the descendants of a lost
 * keeper cannot be told from others any more.
 */
#ifndef SPOOLBOX_INIT_INIT_H
#define SPOOLBOX_INIT_INIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#include "run/wire.h"

/* serve.c: PID 1 from the moment it is ready. signal_fd reports SIGCHLD. */
noreturn void serve_forever(int listen_fd, int signal_fd);

/* keeper.c: serves one connection and ends the process. */
noreturn void keeper_run(int conn_fd, int signal_fd);

/* spawn.c: forks and starts the command. status_fd, to be closed by the caller, becomes readable
 * when exec went through (end of file) or failed; spawn_result then tells which. -1 with errno. */
pid_t spawn_command(const struct wire_request *request, const int fds[WIRE_FDS], int *status_fd);
/* True: it runs. False: step and error of reply are set. Does not block once readable. */
bool spawn_result(int status_fd, struct wire_reply *reply);

/* tree.c: the descendants of this process, found in /proc. */
int tree_count(void);
int tree_signal(int sig); /* returns how many were signalled */
/* Stops all of them, looking again until no more turn up, then kills all. */
void tree_kill(void);

/* main.c */
int64_t init_now_ms(void);
/* Sends a whole reply or nothing; never blocks and never raises a signal. */
void init_send(int conn_fd, const struct wire_reply *reply);
/* Empties the signal descriptor. */
void init_drain(int signal_fd);
/* Closes every descriptor from the given one on. */
void init_close_from(int first);

#endif
