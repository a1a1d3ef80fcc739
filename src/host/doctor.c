/* SPDX-License-Identifier: MIT */
#include "host/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/human.h"
#include "host/gc.h"
#include "host/ident.h"
#include "host/link.h"
#include "host/state.h"
#include "host/version.h"
#include "run/shims.h"
#include "store/store.h"

/* Some logs of the default size. */
#define ENOUGH_BYTES (UINT64_C(512) << 20)
#define ENOUGH_FILES 10000
/* 2020: before it, no clock has been set. */
#define FIRST_MS INT64_C(1577836800000)

struct visit {
	const char *state; /* as given */
	char *path;        /* NULL: it cannot be used */
	int folder_fd;
	doctor_fn fn;
	void *ud;
};

__attribute__((format(printf, 4, 5))) static void tell(const struct visit *v,
						       enum doctor_verdict verdict,
						       const char *what, const char *fmt,
						       ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->fn(v->ud, verdict, what, text);
}

/* ---- the state folder ---- */

static void look_at_folder(struct visit *v)
{
	struct err err = {0};

	if (state_folder(v->state, &v->path, &v->folder_fd, &err) < 0)
		tell(v, DOCTOR_BROKEN, err.code == ERR_ARG ? "settings" : "state folder",
		     "%s", err.msg);
	else if (faccessat(v->folder_fd, ".", W_OK, AT_EACCESS) < 0)
		tell(v, DOCTOR_BROKEN, "state folder", "'%s' cannot be written: %s",
		     v->path, strerror(errno));
	else
		tell(v, DOCTOR_FINE, "state folder", "%s is private and ours", v->path);
}

static void look_at_disk(struct visit *v)
{
	autobuf struct buf bytes = BUF_INIT(64);
	struct statvfs fs;
	uint64_t available;

	if (!v->path || fstatvfs(v->folder_fd, &fs) < 0)
		return;
	available = (uint64_t)fs.f_bavail * fs.f_frsize;
	human_put_bytes(&bytes, available);
	if (available < ENOUGH_BYTES)
		tell(v, DOCTOR_POORER, "disk",
		     "only %sB are free under the state folder: logs may stop; make room",
		     buf_text(&bytes));
	else if (fs.f_files && fs.f_favail < ENOUGH_FILES)
		tell(v, DOCTOR_POORER, "disk",
		     "only %" PRIu64 " files can still be made under the state folder",
		     (uint64_t)fs.f_favail);
	else
		tell(v, DOCTOR_FINE, "disk", "%sB are free", buf_text(&bytes));
}

static void look_at_store(struct visit *v)
{
	struct store *s = NULL;
	struct store_health health = {0};
	struct err err = {0};
	int rc;

	if (!v->path)
		return;
	rc = store_open(v->path, STORE_READ, &s, NULL, &err);
	if (rc == -ERR_NOT_FOUND) {
		tell(v, DOCTOR_FINE, "store", "there is none yet");
		return;
	}
	if (rc == 0)
		rc = store_check(s, &health, &err);
	store_close(s);
	if (rc < 0)
		tell(v, DOCTOR_BROKEN, "store", "%s", err.msg);
	else if (health.problem[0])
		tell(v, DOCTOR_BROKEN, "store",
		     "it is damaged (%s): the next host moves it aside and begins anew",
		     health.problem);
	else
		tell(v, DOCTOR_FINE, "store",
		     "whole: %" PRId64 " live, %" PRId64 " listed, %" PRId64 " in history",
		     health.live, health.listed, health.history);
}

static void look_at_leftovers(struct visit *v)
{
	struct err err = {0};
	struct gc g;

	if (!v->path || gc_look(v->state, &g, &err) < 0)
		return;
	if (g.crashed)
		tell(v, DOCTOR_POORER, "embedded",
		     "%zu hosts inside `errand mcp` have crashed: the next daemon takes "
		     "over what they left in '%s/embedded'; `errand run` starts one",
		     g.crashed, v->path);
	else if (g.busy)
		tell(v, DOCTOR_POORER, "embedded",
		     "%zu folders of hosts that have left: `errand gc` removes them",
		     g.busy);
	else
		tell(v, DOCTOR_FINE, "embedded", "%zu hosts run inside `errand mcp`",
		     g.live);
}

struct shims {
	const struct visit *visit;
	const char *folder;
	size_t n, deleted;
};

static void look_at_one_shim(void *ud, const struct run_shim *shim)
{
	struct shims *all = ud;
	size_t len = strlen(all->folder);

	if (strncmp(shim->folder, all->folder, len) != 0 || shim->folder[len] != '/')
		return;
	all->n++;
	if (!shim->is_deleted)
		return;
	all->deleted++;
	tell(all->visit, DOCTOR_POORER, "supervisors",
	     "the run folder of the task under errand-shim %d (a process of it: %d) has "
	     "been deleted: nobody can read it, the next host will not know it; "
	     "`kill %d` ends it",
	     (int)shim->pid, (int)shim->task, (int)shim->pid);
}

static void look_at_shims(struct visit *v)
{
	struct shims all = {.visit = v};
	char real[PATH_MAX];

	if (!v->path || !realpath(v->path, real))
		return;
	all.folder = real;
	run_each_shim(look_at_one_shim, &all);
	if (!all.deleted)
		tell(v, DOCTOR_FINE, "supervisors", "%zu, each with its run folder", all.n);
}

/* ---- the host ---- */

static void look_at_version(const struct visit *v, const struct welcome *w)
{
	int order = version_compare(w->version, ERRAND_VERSION);

	if (order == 0)
		tell(v, DOCTOR_FINE, "host", "pid %ld, version %s", (long)w->pid,
		     w->version);
	else
		tell(v, DOCTOR_POORER, "host", "pid %ld is version %s, and this is %s: %s",
		     (long)w->pid, w->version, ERRAND_VERSION,
		     order < 0 ? "it makes way for the next `errand mcp` or `errand run`, "
				 "and no task ends with it"
			       : "this one is outdated");
}

static void look_at_host(struct visit *v)
{
	struct link_options o = {.state = v->state, .role = HELLO_OPERATOR};
	struct link *l = NULL;
	struct err err = {0};

	if (!v->path)
		return;
	switch (link_open(&o, &l, &err)) {
	case LINK_OPEN:
		look_at_version(v, link_welcome(l));
		break;
	case LINK_NO_SOCKET:
		tell(v, DOCTOR_FINE, "host", "none runs; `errand run` starts one");
		break;
	case LINK_STALE:
		tell(v, DOCTOR_FINE, "host",
		     "none runs; one has died, the next takes its place");
		break;
	case LINK_REFUSED:
	case LINK_OLDER:
	case LINK_NEWER:
	case LINK_BROKEN:
		tell(v, DOCTOR_BROKEN, "host", "%s", err.msg);
	}
	link_free(l);
}

static void look_at_shim(struct visit *v)
{
	struct err err = {0};
	autofree char *path = ident_shim(&err);

	if (path)
		tell(v, DOCTOR_FINE, "errand-shim", "%s", path);
	else
		tell(v, DOCTOR_BROKEN, "errand-shim", "%s; install errand whole", err.msg);
}

/* ---- the kernel ---- */

static void look_at_pidfd(struct visit *v)
{
	autoclose int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0)
		tell(v, DOCTOR_FINE, "pidfd", "signals reach exactly whom they are for");
	else
		tell(v, DOCTOR_POORER, "pidfd",
		     "%s: only a task's own children can be ended for certain; a kernel "
		     "of 5.3 or later has it, unless seccomp forbids it",
		     strerror(errno));
}

static void look_at_subreaper(struct visit *v)
{
	int is_one;

	if (prctl(PR_GET_CHILD_SUBREAPER, &is_one) == 0)
		tell(v, DOCTOR_FINE, "subreaper", "orphans stay with their task");
	else
		tell(v, DOCTOR_BROKEN, "subreaper",
		     "%s: what a task leaves behind escapes it", strerror(errno));
}

static void look_at_proc(struct visit *v)
{
	if (access("/proc/self/stat", R_OK) < 0)
		tell(v, DOCTOR_BROKEN, "/proc",
		     "it is not mounted: a kill cannot be proved complete; mount it");
	else if (access("/proc/thread-self/children", R_OK) < 0)
		tell(v, DOCTOR_POORER, "/proc",
		     "it lists no children (CONFIG_PROC_CHILDREN): trees are found by "
		     "looking at every process, and `errand ls` shows no CPU and memory "
		     "of live tasks");
	else
		tell(v, DOCTOR_FINE, "/proc", "lists the children of a process");
}

static void look_at_cgroup(struct visit *v)
{
	struct statfs fs;

	if (statfs("/sys/fs/cgroup", &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		tell(v, DOCTOR_FINE, "cgroup", "no version 2 here; not needed so far");
	else if (access("/sys/fs/cgroup/cgroup.procs", W_OK) < 0)
		tell(v, DOCTOR_FINE, "cgroup",
		     "version 2, not delegated to us; not needed so far");
	else
		tell(v, DOCTOR_FINE, "cgroup", "version 2, writable; not used so far");
}

/* ---- the rest ---- */

static void look_at_systemd(struct visit *v)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX];

	if (folder && *folder == '/')
		(void)snprintf(path, sizeof(path), "%s/systemd/private", folder);
	else
		(void)snprintf(path, sizeof(path), "/run/user/%u/systemd/private",
			       (unsigned)geteuid());
	if (access(path, F_OK) == 0)
		tell(v, DOCTOR_FINE, "systemd", "there is one for this user");
	else
		tell(v, DOCTOR_FINE, "systemd",
		     "none for this user: a host is forked off, and ends where all "
		     "processes of a login are ended with it");
}

static void look_at_clock(struct visit *v)
{
	if (clock_wall_ms() < FIRST_MS)
		tell(v, DOCTOR_POORER, "clock",
		     "it says a time before 2020: ages are wrong; set it");
	else
		tell(v, DOCTOR_FINE, "clock", "set");
}

void doctor(const char *state, doctor_fn fn, void *ud)
{
	static void (*const looks[])(struct visit * v) = {
		look_at_folder,    look_at_disk,      look_at_store,  look_at_host,
		look_at_shim,      look_at_leftovers, look_at_shims,  look_at_pidfd,
		look_at_subreaper, look_at_proc,      look_at_cgroup, look_at_systemd,
		look_at_clock,
	};
	struct visit v = {.state = state, .folder_fd = -1, .fn = fn, .ud = ud};

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		looks[i](&v);
	if (v.folder_fd >= 0)
		close(v.folder_fd);
	mem_free(NULL, v.path);
}
