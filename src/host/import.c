/* SPDX-License-Identifier: MIT */
#include "host/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "host/audit.h"
#include "host/internal.h"
#include "host/state.h"
#include "run/bash.h"
#include "run/run.h"

#define LABEL "left behind by a host that crashed"
#define RECOVERED "recovered"
/* All are live until their records have been read. */
#define BATCH 16

struct import {
	struct host *host;
	int tasks_fd; /* the daemon's own */
	const struct buf *known;
	bool may_pump; /* is the core ours to run? */
	unsigned n;
	/* Of the folder that is being imported: */
	int from_fd; /* its tasks; -1: the daemon's own */
	char session[64];
};

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
}

/* Ends when @fn says so. */
static bool each_name(int fd, bool (*fn)(struct import *m, int fd, const char *name),
		      struct import *m)
{
	int own = open_folder(fd, ".");
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	const struct dirent *e;
	bool goes_on = true;

	if (!dir && own >= 0)
		close(own);
	while (dir && goes_on && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			goes_on = fn(m, fd, e->d_name);
	if (dir)
		closedir(dir);
	return goes_on;
}

/* Records are read, and who has ended is no longer live. */
static void pump(struct host *h)
{
	run_turn(h->run, clock_mono_ms());
	while (errand_run(h->core, clock_mono_ms(), clock_wall_ms(), 0) > 0)
		;
}

static bool refused(const struct import *m, const char *uid, const char *why)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "cannot take over task folder %.40s now: %.300s",
		       uid, why);
	if (m->may_pump)
		host_say(line);
	return false;
}

/* What a link leads to is not ours to write into, nor to delete. */
static bool is_no_folder(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode);
}

static bool import_task(struct import *m, int fd, const char *uid)
{
	struct host *h = m->host;
	size_t len = strlen(m->session);
	errand_text *id = NULL;
	errand_error *e = NULL;
	errand_agent owner;
	struct err err;

	if (!run_is_uid(uid) || is_no_folder(fd, uid))
		return true;
	if (owners_agent(&h->owners, m->session, len, clock_mono_ms(), &owner, &err) < 0)
		return refused(m, uid, err.msg);
	/* First of all: what stays behind is not to be taken for a task that is done with. */
	if (m->from_fd >= 0 && renameat(fd, uid, m->tasks_fd, uid) < 0)
		return refused(m, uid, strerror(errno));
	if (bash_import(h->bash, owner, uid, LABEL, &id, &e) < 0) {
		bool goes_on = refused(m, uid, errand_error_message(e, NULL));

		if (m->from_fd >= 0)
			(void)renameat(m->tasks_fd, uid, fd, uid);
		errand_error_free(e);
		return goes_on;
	}
	audit_import(h, owner, errand_text_data(id, NULL));
	errand_text_free(id);
	if (m->may_pump && ++m->n % BATCH == 0)
		pump(h);
	return true;
}

/* ---- run folders that no row names ---- */

static bool is_known(const struct import *m, const char *uid)
{
	const char *end = m->known->data + m->known->len;

	for (const char *p = m->known->data; p < end; p += strlen(p) + 1)
		if (strcmp(p, uid) == 0)
			return true;
	return run_of_uid(m->host->run, uid) != NULL;
}

static bool import_orphan(struct import *m, int fd, const char *uid)
{
	return is_known(m, uid) || import_task(m, fd, uid);
}

/* ---- embedded hosts that crashed ---- */

/* All of it has been moved. A host that lives holds the lock, one that has left has none. */
static bool import_host(struct import *m, int fd, const char *name)
{
	autoclose int folder = open_folder(fd, name), lock = -1, tasks = -1;
	bool is_done;

	if (folder >= 0)
		lock = openat(folder, STATE_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		return true;
	tasks = open_folder(folder, "tasks");
	m->from_fd = tasks;
	(void)snprintf(m->session, sizeof(m->session), "embedded-%.40s", name);
	is_done = tasks < 0 || each_name(tasks, import_task, m);
	m->from_fd = -1;
	if (!is_done)
		return false;
	(void)unlinkat(folder, "tasks", AT_REMOVEDIR);
	(void)unlinkat(folder, STATE_LOCK, 0);
	(void)unlinkat(fd, name, AT_REMOVEDIR);
	return true;
}

static void import_hosts(struct import *m)
{
	autoclose int embedded = open_folder(m->host->state.folder_fd, "embedded");

	if (embedded >= 0)
		(void)each_name(embedded, import_host, m);
}

void import_all(struct host *h, const struct buf *known)
{
	autoclose int tasks = open_folder(h->state.folder_fd, "tasks");
	struct import m = {
		.host = h,
		.tasks_fd = tasks,
		.known = known,
		.may_pump = true,
		.from_fd = -1,
		.session = RECOVERED,
	};

	if (tasks < 0)
		return;
	pump(h); /* before its first turn the core does not know what time it is */
	(void)each_name(tasks, import_orphan, &m);
	import_hosts(&m);
}

void import_more(struct host *h)
{
	autoclose int tasks = open_folder(h->state.folder_fd, "tasks");
	struct import m = {.host = h, .tasks_fd = tasks, .from_fd = -1};

	if (tasks >= 0)
		import_hosts(&m);
}
