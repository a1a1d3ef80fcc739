/* SPDX-License-Identifier: MIT */
#include "host/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "host/config.h"
#include "host/gc.h"
#include "host/ident.h"
#include "host/launch.h"
#include "host/link.h"
#include "host/state.h"
#include "host/task_limits.h"
#include "host/version.h"
#include "run/run.h"
#include "run/shims.h"
#include "store/store.h"

/* Some logs of the default size. */
#define ENOUGH_BYTES (UINT64_C(512) << 20)
#define ENOUGH_FILES 10000
/* So long a host may take to say hello. */
#define PATIENCE_MS 5000
/* 2020: before it, no clock has been set. */
#define FIRST_MS INT64_C(1577836800000)

struct visit {
	const char *state; /* as given */
	char *path;        /* NULL: it cannot be used */
	int folder_fd;
	pid_t host_pid; /* 0: none runs */
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

	if (state_find(v->state, &v->path, &v->folder_fd, &err) < 0 && err.errnum == ENOENT)
		tell(v, DOCTOR_POORER, "state folder", "%s", err.msg);
	else if (!v->path)
		tell(v, DOCTOR_BROKEN, err.code == ERR_ARG ? "settings" : "state folder",
		     "%s", err.msg);
	else if (faccessat(v->folder_fd, ".", W_OK, AT_EACCESS) < 0)
		tell(v, DOCTOR_BROKEN, "state folder", "'%s' cannot be written: %s",
		     v->path, strerror(errno));
	else
		tell(v, DOCTOR_FINE, "state folder", "%s is private and ours", v->path);
}

/* Each of what lies in it: a reader of another user needs only one that is open. */
static bool is_private(const struct visit *v, const char *name)
{
	struct stat st;

	if (fstatat(v->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true; /* it is not there */
	if (S_ISLNK(st.st_mode))
		tell(v, DOCTOR_BROKEN, "modes", "'%s/%s' is a symbolic link: remove it",
		     v->path, name);
	else if (st.st_uid != geteuid())
		tell(v, DOCTOR_BROKEN, "modes",
		     "'%s/%s' belongs to uid %u: remove it, or chown it", v->path, name,
		     (unsigned)st.st_uid);
	else if (st.st_mode & 077)
		tell(v, DOCTOR_BROKEN, "modes",
		     "'%s/%s' is open to others (mode %04o): chmod go= it", v->path, name,
		     (unsigned)st.st_mode & 07777);
	else
		return true;
	return false;
}

static void look_at_modes(struct visit *v)
{
	static const char *const names[] = {
		STORE_FILE,  STORE_FILE "-wal", STORE_FILE "-shm", STATE_LOCK,
		"host.sock", "host.log",        "tasks",           "embedded",
	};
	bool is_fine = true;

	if (!v->path)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is_fine = is_private(v, names[i]) && is_fine;
	if (is_fine)
		tell(v, DOCTOR_FINE, "modes", "all that is there is closed to others");
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
		     "whole, version %" PRId64 ": %" PRId64 " live, %" PRId64
		     " listed, %" PRId64 " in history",
		     health.version, health.live, health.listed, health.history);
}

/* The uids that the store names, each ended by a NUL. */
static void take_run(void *ud, const struct store_run *r)
{
	buf_add(ud, r->uid.ptr, r->uid.len);
	buf_addc(ud, 0);
}

static int read_runs(const struct visit *v, struct buf *ret)
{
	struct store_loader loader = {.run = take_run, .ud = ret};
	struct store *s = NULL;
	struct err err;
	int rc = store_open(v->path, STORE_READ, &s, NULL, &err);

	if (rc == 0)
		rc = store_load(s, &loader, &err);
	store_close(s);
	return rc == -ERR_NOT_FOUND ? 0 : rc;
}

static bool has_name(const struct buf *names, const char *name)
{
	const char *end = names->data + names->len;

	for (const char *p = names->data; p < end; p += strlen(p) + 1)
		if (strcmp(p, name) == 0)
			return true;
	return false;
}

static void count_folders(const struct visit *v, const struct buf *names, size_t *ret_n,
			  size_t *ret_unknown)
{
	int fd = openat(v->folder_fd, "tasks",
			O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		if (!run_is_uid(e->d_name))
			continue;
		(*ret_n)++;
		*ret_unknown += !has_name(names, e->d_name);
	}
	if (dir)
		closedir(dir);
}

static void look_at_run_folders(struct visit *v)
{
	autobuf struct buf names = BUF_INIT(MAX_JSON_TEXT);
	size_t n = 0, unknown = 0;

	if (!v->path || read_runs(v, &names) < 0)
		return;
	count_folders(v, &names, &n, &unknown);
	if (unknown)
		tell(v, DOCTOR_POORER, "run folders",
		     "%zu of %zu in '%s/tasks' are of tasks that the store does not know: the "
		     "next daemon takes them over",
		     unknown, n, v->path);
	else
		tell(v, DOCTOR_FINE, "run folders", "%zu, each of a task that is known", n);
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

/* By somebody who does not answer: that has been told then. */
static bool is_locked(const struct visit *v)
{
	autoclose int fd = openat(v->folder_fd, STATE_LOCK,
				  O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char pid[16] = "";

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return false;
	if (read(fd, pid, sizeof(pid) - 1) > 0)
		pid[strcspn(pid, "\n")] = 0;
	tell(v, DOCTOR_BROKEN, "host",
	     "pid %s holds the lock of the state folder and does not answer: if it is "
	     "stopped, `kill -CONT %s`; else end it, no task ends with it",
	     pid, pid);
	return true;
}

static int be_patient(void *ud, int64_t silent_ms)
{
	(void)ud;
	return silent_ms < PATIENCE_MS ? (int)(PATIENCE_MS - silent_ms) : -1;
}

static void look_at_host(struct visit *v)
{
	struct link_options o = {
		.state = v->state,
		.role = HELLO_OPERATOR,
		.on_silence = be_patient,
	};
	struct link *l = NULL;
	struct err err = {0};

	if (!v->path)
		return;
	switch (link_open(&o, &l, &err)) {
	case LINK_OPEN:
		v->host_pid = (pid_t)link_welcome(l)->pid;
		look_at_version(v, link_welcome(l));
		break;
	case LINK_NO_SOCKET:
		if (!is_locked(v))
			tell(v, DOCTOR_FINE, "host", "none runs; `errand run` starts one");
		break;
	case LINK_STALE:
		if (!is_locked(v))
			tell(v, DOCTOR_FINE, "host",
			     "none runs; one has died, the next takes its place");
		break;
	case LINK_REFUSED:
	case LINK_OLDER:
	case LINK_NEWER:
	case LINK_BROKEN:
		if (err.errnum != ETIMEDOUT || !is_locked(v))
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

/* ---- the rest ---- */

/* Of a host that runs, what it does; without one, what the next one can do. */
static void look_at_held(const struct visit *v, const struct config *c)
{
	autobuf struct buf held = BUF_INIT(KIB(1)), missing = BUF_INIT(KIB(1));
	struct err why = {0};
	unsigned can = ~0u;

	if (v->host_pid)
		can = run_can_limit(v->host_pid, &why);
	else if (!launch_has_systemd())
		can = 0;
	task_limits_put(c, can, true, &held);
	task_limits_put(c, can, false, &missing);
	if (held.len)
		tell(v, DOCTOR_FINE, "limits", "%s: %s", buf_text(&held),
		     v->host_pid ? "held for each task that this host starts"
				 : "the next host can hold them, if systemd starts it");
	if (missing.len)
		tell(v, DOCTOR_POORER, "limits",
		     "%s: not held for any task%s%s: a host needs a control group of its "
		     "own with their controllers (memory, pids, cpu); `systemctl --user "
		     "start errand` gives it one, or a unit with Delegate=yes; end the one "
		     "that runs before, its tasks go on",
		     buf_text(&missing), why.msg[0] ? ", since " : "", why.msg);
}

static void look_at_limits(struct visit *v)
{
	autobuf struct buf set = BUF_INIT(KIB(1));
	struct config c = {0};

	if (config_read(&c, environ, NULL) < 0)
		return; /* that has been told */
	task_limits_put(&c, 0, false, &set);
	if (set.len)
		look_at_held(v, &c);
	else
		tell(v, DOCTOR_FINE, "limits", "none is set for a task");
	config_release(&c);
}

static void look_at_systemd(struct visit *v)
{
	if (launch_has_systemd())
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
		look_at_folder,      look_at_modes,   look_at_disk,      look_at_store,
		look_at_run_folders, look_at_host,    look_at_shim,      look_at_leftovers,
		look_at_shims,       look_at_pidfd,   look_at_subreaper, look_at_proc,
		look_at_limits,      look_at_systemd, look_at_clock,
	};
	struct visit v = {.state = state, .folder_fd = -1, .fn = fn, .ud = ud};

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		looks[i](&v);
	if (v.folder_fd >= 0)
		close(v.folder_fd);
	mem_free(NULL, v.path);
}
