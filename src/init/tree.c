/*
 * Descendants, from the parent numbers in /proc/PID/stat. /proc lists processes in ascending
 * order, so a parent is found by bisection.
 */
#include "init/init.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TREE_MAX   32768 /* the kernel's default pid_max; more are met in later passes */
#define PASSES_MAX 50    /* of stopping, before killing what was found */

struct process {
	pid_t pid, parent;
	bool is_ours, is_dead;
};

static struct process table[TREE_MAX];
static size_t table_len;

/* The n-th field after the state, which is field 3 of stat. */
static long read_field(const char *state, int n)
{
	while (n-- > 0 && state)
		state = strchr(state + 1, ' ');
	return state ? strtol(state, NULL, 10) : 0;
}

static bool read_process(const char *name, struct process *process)
{
	char path[32], text[1024]; /* about fifty numbers behind a name of at most 64 bytes */
	if (snprintf(path, sizeof(path), "/proc/%s/stat", name) >= (int)sizeof(path))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	const char *end_of_name = strrchr(text, ')'); /* the name may hold any byte */
	if (!end_of_name || strlen(end_of_name) < 3)
		return false;
	const char *state = end_of_name + 2;
	process->pid = (pid_t)strtol(name, NULL, 10);
	process->parent = (pid_t)read_field(state, 1);
	process->is_ours = false;
	/* A process whose first thread has ended looks like a zombie but runs on. */
	process->is_dead = (*state == 'Z' || *state == 'X') && read_field(state, 17) <= 1;
	return true;
}

static bool parent_is_ours(const struct process *process)
{
	if (process->parent == getpid())
		return true;
	size_t low = 0, high = table_len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table[middle].pid == process->parent)
			return table[middle].is_ours;
		if (table[middle].pid < process->parent)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static void read_processes(void)
{
	table_len = 0;
	DIR *dir = opendir("/proc");
	if (!dir)
		return;
	for (struct dirent *entry; table_len < TREE_MAX && (entry = readdir(dir));)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    read_process(entry->d_name, &table[table_len]))
			table_len++;
	closedir(dir);
}

/* Marks the descendants; returns how many of them are alive. */
static int collect(void)
{
	int count = 0;
	read_processes();
	/* Once is enough unless numbers wrapped around, so that a child has the lower one. */
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < table_len; i++) {
			if (table[i].is_ours || !parent_is_ours(&table[i]))
				continue;
			table[i].is_ours = changed = true;
			count += !table[i].is_dead;
		}
	}
	return count;
}

static void signal_collected(int sig)
{
	for (size_t i = 0; i < table_len; i++)
		if (table[i].is_ours)
			kill(table[i].pid, sig);
}

int tree_count(void)
{
	return collect();
}

int tree_signal(int sig)
{
	int count = collect();
	signal_collected(sig);
	return count;
}

void tree_kill(void)
{
	for (int pass = 0, before = -1, count; pass < PASSES_MAX; pass++, before = count) {
		count = tree_signal(SIGSTOP);
		if (count == before)
			break;
	}
	signal_collected(SIGKILL);
}
