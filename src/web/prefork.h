/*
 * Several workers on one listening socket, for whoever starts us with that socket as descriptor 0
 * (`spoolbox serve`, spawn-fcgi). With a socket per process, as lighttpd makes them, a call that
 * meets a busy process waits for it though others are idle; on a shared one whoever is idle takes
 * it. Not for lighttpd's bin-path: when this parent is killed it takes the workers' socket for
 * somebody else's and never starts them again.
 */
#ifndef SPOOLBOX_WEB_PREFORK_H
#define SPOOLBOX_WEB_PREFORK_H

#define PREFORK_MAX 256 /* as SMCP_WORKERS */

/* Forks count workers, each of which runs work(ctx) and ends with its value, and keeps that many
 * until TERM, INT, HUP or USR1 comes or the web server is gone; then lets them finish. Returns the
 * exit status in the parent; does not return in a worker. Call it before anything that must not be
 * shared by a fork (the database) is opened. */
int prefork_run(int count, int (*work)(void *ctx), void *ctx);

#endif
