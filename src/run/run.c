/* SPDX-License-Identifier: MIT */
/* run.c - the tasks of one host: plan, spawn, watch, end, forget. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "run/internal.h"

#define EVENTS_PER_TURN 64
/* Deleting folders must not hold up a host that is leaving: the next one sweeps. */
#define LEAVE_BUDGET_MS 30
/* A task is a better victim of the out-of-memory killer than its host. */
#define OOM_RAISE 100
#define OOM_MAX 1000

/* ---- the object ---- */

static ssize_t read_small_file(const char *path, char *text, size_t size)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = 0;
	return n;
}

/* "0a1b2c3d-..." to bytes; all zero if it cannot be read. */
static void read_boot_id(uint8_t id[16])
{
	char text[64];
	size_t n = 0;

	(void)read_small_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	for (const char *p = text; n < 32 && *p; p++) {
		const char *digits = "0123456789abcdef", *d = strchr(digits, *p);

		if (d) {
			id[n / 2] = (uint8_t)(id[n / 2] << 4 | (d - digits));
			n++;
		}
	}
}

static int task_oom_score(void)
{
	char text[32];
	long own;

	(void)read_small_file("/proc/self/oom_score_adj", text, sizeof(text));
	own = strtol(text, NULL, 10);
	return own + OOM_RAISE > OOM_MAX ? OOM_MAX : (int)own + OOM_RAISE;
}

static char *tasks_path(const char *folder)
{
	struct buf path = BUF_INIT(KIB(64));

	buf_addf(&path, "%s/tasks", folder);
	return buf_take(&path, NULL);
}

static int open_all(struct run *r, struct err *err)
{
	struct stat st;

	if (mkdir(r->tasks_path, 0700) != 0 && errno != EEXIST)
		return err_sys(err, errno, "cannot make '%s'", r->tasks_path);
	r->tasks_fd = open(r->tasks_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->tasks_fd < 0 || fstat(r->tasks_fd, &st) != 0)
		return err_sys(err, errno, "cannot open '%s'", r->tasks_path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_ARG, "'%s' belongs to another user", r->tasks_path);
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return err_sys(err, errno, "cannot watch for ends");
	r->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (r->null_fd < 0)
		return err_sys(err, errno, "cannot open '/dev/null'");
	return 0;
}

int run_new(const char *folder, const char *shim, struct run **ret, struct err *err)
{
	struct run *r = mem_new(NULL, sizeof(*r));
	int rc;

	r->tasks_fd = r->epoll_fd = r->null_fd = r->groups_fd = -1;
	list_init(&r->planned);
	list_init(&r->live);
	list_init(&r->silent);
	list_init(&r->ended);
	list_init(&r->dropped);
	map_init(&r->by_id, NULL);
	r->tasks_path = tasks_path(folder);
	r->shim = mem_dup(NULL, shim, strlen(shim));
	read_boot_id(r->boot_id);
	r->oom_score_adj = task_oom_score();
	rc = open_all(r, err);
	if (rc != 0) {
		run_free(r);
		return rc;
	}
	(void)signal(SIGCHLD, SIG_IGN);
	*ret = r;
	return 0;
}

static const char supervisor_gone[] = "the task's supervisor has gone";

static void close_if(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

static void forget(struct run_task *t)
{
	run_set_due(t, INT64_MAX);
	map_del(&t->run->by_id, t->id);
	list_del(&t->node);
	close_if(t->sock);
	run_forget_requests(t);
	buf_release(&t->spec);
	mem_free(NULL, t->log_path);
	mem_free(NULL, t);
}

static void forget_all(struct list *tasks)
{
	list_each(node, tasks) forget(list_entry(node, struct run_task, node));
}

void run_free(struct run *r)
{
	if (!r)
		return;
	forget_all(&r->planned);
	forget_all(&r->live);
	forget_all(&r->silent);
	forget_all(&r->ended);
	forget_all(&r->dropped);
	map_release(&r->by_id);
	close_if(r->tasks_fd);
	close_if(r->epoll_fd);
	close_if(r->null_fd);
	close_if(r->groups_fd);
	mem_free(NULL, r->tasks_path);
	mem_free(NULL, r->shim);
	mem_free(NULL, r);
}

/* ---- ends ---- */

void run_move(struct run_task *t, enum run_phase phase)
{
	struct run *r = t->run;
	struct list *lists[] = {
		[RUN_PLANNED] = &r->planned, [RUN_LIVE] = &r->live,
		[RUN_SILENT] = &r->silent,   [RUN_ENDED] = &r->ended,
		[RUN_DROPPED] = &r->dropped,
	};

	list_del(&t->node);
	list_add(lists[phase], &t->node);
	t->phase = phase;
}

void run_disconnect(struct run_task *t)
{
	close_if(t->sock);
	t->sock = -1;
}

void run_settle(struct run_task *t, const struct run_end *end)
{
	run_move(t, RUN_ENDED);
	run_set_due(t, INT64_MAX);
	t->seen = end->bytes_seen;
	t->dropped = end->bytes_dropped;
	t->fn(t->ud, t, end);
}

/* The kernel ends for want of memory by a signal, which nobody here had sent. */
static enum run_cause cause_of(const struct proto_record *record)
{
	static const enum run_cause causes[] = {
		[PROTO_CAUSE_NONE] = RUN_LOST,
		[PROTO_CAUSE_EXIT] = RUN_EXIT,
		[PROTO_CAUSE_SIGNAL] = RUN_SIGNAL,
		[PROTO_CAUSE_KILL] = RUN_KILL,
		[PROTO_CAUSE_DEADLINE] = RUN_DEADLINE,
		[PROTO_CAUSE_NOT_STARTED] = RUN_NOT_STARTED,
	};

	if (record->cause > PROTO_CAUSE_NOT_STARTED)
		return RUN_LOST;
	if (record->cause == PROTO_CAUSE_SIGNAL && record->memory_hit &&
	    WTERMSIG(record->wait_status) == SIGKILL)
		return RUN_OOM;
	return causes[record->cause];
}

void run_settle_record(struct run_task *t, const struct proto_record *record)
{
	struct run_end end = {
		.cause = cause_of(record),
		.wait_status = record->wait_status,
		.deadline_ms = record->deadline_ms,
		.bytes_seen = record->bytes_seen,
		.bytes_dropped = record->bytes_dropped,
		.processes_left = record->processes_left,
		.left_pid = record->left_pid,
		.left_uid = record->left_uid,
		.detached_left = record->detached_left,
		.is_unproved = record->flags & PROTO_NOT_PROVED,
		.started_ms = record->started_ms,
		.ended_ms = record->ended_ms,
		.took_ms = record->took_ms,
		.cpu_us = record->cpu_us,
		.peak_kib = record->peak_kib,
		.log_errno = (int)record->log_errno,
		.memory_hit = record->memory_hit == PROTO_MACHINE ? 0 : record->memory_hit,
		.processes_hit = record->processes_hit,
	};
	struct run *r = t->run;
	uint64_t id = t->id;
	bool is_over;

	_Static_assert(sizeof(end.why) == sizeof(record->why), "a reason fits");
	memcpy(end.why, record->why, sizeof(end.why));
	/* A shim that stays with what is left still takes requests. */
	if (!(record->flags & (PROTO_ATTACHED_LEFT | PROTO_NOT_PROVED | PROTO_OTHERS_LEFT)))
		t->is_log_closed = true;
	if (t->is_log_closed)
		run_disconnect(t);
	is_over = t->sock < 0;
	run_settle(t, &end);
	if (is_over)
		run_fail_requests(r, id, supervisor_gone);
}

/* ---- the sockets ---- */

static void on_hang_up(struct run_task *t)
{
	struct run *r = t->run;
	uint64_t id = t->id;

	run_disconnect(t);
	/* Else the last one of an ended task's processes has gone. */
	if (t->phase == RUN_LIVE) {
		run_move(t, RUN_SILENT);
		run_lost_begin(t);
	}
	run_fail_requests(r, id, supervisor_gone);
}

/* False: nothing more to read now, or @t may be gone. */
static bool receive(struct run_task *t)
{
	uint8_t bytes[PROTO_PACKET_MAX + 1];
	ssize_t n = recv(t->sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct proto_packet p;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	/* A shim that closed without having read all resets; what it said comes next. */
	if (n < 0 && errno == ECONNRESET)
		return true;
	if (n <= 0) {
		on_hang_up(t);
		return false;
	}
	t->is_tried = false;
	t->pause_ms = 0;
	if (proto_get_packet(bytes, (size_t)n, &p) != 0)
		return true; /* what a newer shim has to say */
	if (p.type == PROTO_MSG_HELLO) {
		t->shim_pid = p.hello.shim_pid;
		t->shim_ticks = p.hello.ticks;
		run_note_due(t);
	}
	if (p.type == PROTO_MSG_REPLY)
		run_take_reply(t, &p.reply);
	if (p.type != PROTO_MSG_ENDED || t->phase != RUN_LIVE)
		return true;
	run_settle_record(t, &p.ended);
	return false;
}

int run_fd(const struct run *r)
{
	return r->epoll_fd;
}

int64_t run_deadline(const struct run *r)
{
	int64_t due = INT64_MAX;

	for (struct list *node = r->silent.next; node != &r->silent; node = node->next) {
		const struct run_task *t = list_entry(node, struct run_task, node);

		if (t->retry_ms < due)
			due = t->retry_ms;
	}
	/* Asked in each turn, and hardly one of thousands is due. */
	for (struct list *node = r->live.next; r->n_due && node != &r->live;
	     node = node->next) {
		const struct run_task *t = list_entry(node, struct run_task, node);

		if (t->due_ms < due)
			due = t->due_ms;
	}
	return due;
}

static struct run_task *first_due(const struct run *r, int64_t mono_ms)
{
	for (struct list *node = r->silent.next; node != &r->silent; node = node->next) {
		struct run_task *t = list_entry(node, struct run_task, node);

		if (t->retry_ms <= mono_ms)
			return t;
	}
	return NULL;
}

/* Each look settles a task or sets a later time; a callback may forget any other. */
static void look_at_silent(struct run *r, int64_t mono_ms)
{
	struct run_task *t;

	while ((t = first_due(r, mono_ms)))
		run_lost_look(t, mono_ms);
}

static void remind_late(struct run *r, int64_t mono_ms)
{
	for (struct list *node = r->live.next; r->n_due && node != &r->live;
	     node = node->next) {
		struct run_task *t = list_entry(node, struct run_task, node);

		if (t->due_ms <= mono_ms)
			run_remind(t, mono_ms);
	}
}

void run_turn(struct run *r, int64_t mono_ms)
{
	struct epoll_event events[EVENTS_PER_TURN];
	int n;

	do {
		n = epoll_wait(r->epoll_fd, events, EVENTS_PER_TURN, 0);
		for (int i = 0; i < n; i++) {
			uint64_t id = events[i].data.u64;
			struct run_task *t;

			while ((t = map_get(&r->by_id, id)) && t->sock >= 0 && receive(t))
				;
		}
	} while (n == EVENTS_PER_TURN);
	look_at_silent(r, mono_ms);
	remind_late(r, mono_ms);
}

/* ---- starting ---- */

struct run_task *run_task_new(struct run *r, run_end_fn fn, void *ud)
{
	struct run_task *t = mem_new(NULL, sizeof(*t));

	list_init(&t->node);
	t->run = r;
	t->id = ++r->last_id;
	t->sock = -1;
	list_init(&t->requests);
	t->due_ms = INT64_MAX;
	t->fn = fn;
	t->ud = ud;
	map_put(&r->by_id, t->id, t);
	return t;
}

int run_start(struct run *r, const struct run_spec *spec, run_end_fn fn, void *ud,
	      struct run_task **ret, struct err *err)
{
	struct run_task *t = run_task_new(r, fn, ud);
	int rc = run_plan(t, spec, err);

	if (rc != 0) {
		forget(t);
		return rc;
	}
	run_move(t, RUN_PLANNED);
	*ret = t;
	return 0;
}

int run_watch(struct run_task *t, struct err *err)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = t->id};

	if (epoll_ctl(t->run->epoll_fd, EPOLL_CTL_ADD, t->sock, &ev) != 0)
		return err_sys(err, errno, "cannot watch the supervisor");
	return 0;
}

static void spawn_failed(struct run_task *t, const struct err *err)
{
	struct run_end end = {.cause = RUN_NOT_STARTED};

	(void)snprintf(end.why, sizeof(end.why), "%.*s", (int)sizeof(end.why) - 1,
		       err->msg);
	end.started_ms = end.ended_ms = clock_wall_ms();
	run_disconnect(t);
	run_remove_folder(t->run, t->uid);
	run_settle(t, &end);
}

static void spawn(struct run_task *t)
{
	struct err err;

	run_move(t, RUN_LIVE);
	if (run_spawn(t, &err) != 0) {
		buf_release(&t->spec);
		spawn_failed(t, &err);
		return;
	}
	buf_release(&t->spec);
	if (t->deadline_ms)
		run_set_due(t, clock_mono_ms() + t->deadline_ms + REMIND_MS);
	if (t->is_kill_asked)
		(void)run_tell_kill(t, 0);
	/* Without a watch its end would never be heard: then it is not to run, either. */
	if (run_watch(t, &err) != 0) {
		(void)run_tell_kill(t, PROTO_KILL_DISCARD);
		spawn_failed(t, &err);
	}
}

/* A shim that is still there sweeps what it stays for, and deletes the folder. */
static void discard(struct run_task *t)
{
	if (!t->is_left && !run_tell_kill(t, PROTO_KILL_DISCARD))
		run_remove_folder(t->run, t->uid);
	run_fail_requests(t->run, t->id, "the task has been dropped");
	forget(t);
}

void run_flush(struct run *r)
{
	while (!list_is_empty(&r->dropped))
		discard(list_entry(r->dropped.next, struct run_task, node));
	/* What a callback plans meanwhile is spawned as well. */
	while (!list_is_empty(&r->planned))
		spawn(list_entry(r->planned.next, struct run_task, node));
}

void run_refuse(struct run *r, const char *why)
{
	struct err err;

	(void)err_set(&err, ERR_STATE, "%s", why);
	while (!list_is_empty(&r->planned)) {
		struct run_task *t = list_entry(r->planned.next, struct run_task, node);

		buf_release(&t->spec);
		spawn_failed(t, &err);
	}
}

/* ---- ending ---- */

void run_kill(struct run_task *t)
{
	t->is_kill_asked = true;
	if (t->phase == RUN_SILENT)
		t->retry_ms = clock_mono_ms(); /* now there is less to wait for */
	(void)run_tell_kill(t, 0);
}

const char *run_uid(const struct run_task *t)
{
	return t->uid;
}

static void *find(const struct run *r,
		  bool (*is_it)(const struct run_task *t, const void *what),
		  const void *what)
{
	const struct list *lists[] = {&r->live, &r->silent, &r->ended};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (struct list *node = lists[i]->next; node != lists[i];
		     node = node->next) {
			const struct run_task *t = list_entry(node, struct run_task, node);

			if (is_it(t, what))
				return t->ud;
		}
	}
	return NULL;
}

static bool has_shim(const struct run_task *t, const void *what)
{
	return t->sock >= 0 && t->shim_pid == *(const pid_t *)what;
}

void *run_of_shim(const struct run *r, pid_t shim)
{
	return find(r, has_shim, &shim);
}

static bool has_uid(const struct run_task *t, const void *what)
{
	return strcmp(t->uid, what) == 0;
}

void *run_of_uid(const struct run *r, const char *uid)
{
	return find(r, has_uid, uid);
}

bool run_is_busy(const struct run *r)
{
	return !list_is_empty(&r->planned) || !list_is_empty(&r->live) ||
	       !list_is_empty(&r->silent);
}

void run_drop(struct run_task *t)
{
	/* Once the host leaves, all has been said, and each deletion would hold it up. */
	if (t->run->is_leaving) {
		forget(t);
		return;
	}
	t->is_left = t->phase != RUN_ENDED;
	run_set_due(t, INT64_MAX);
	run_move(t, RUN_DROPPED);
}

void run_let_go(struct run *r)
{
	r->is_leaving = true;
}

static void discard_quickly(struct list *tasks, int64_t until_ms)
{
	list_each(node, tasks)
	{
		struct run_task *t = list_entry(node, struct run_task, node);

		if (!run_tell_kill(t, PROTO_KILL_DISCARD) && clock_mono_ms() < until_ms)
			run_remove_folder(t->run, t->uid);
	}
}

void run_leave(struct run *r)
{
	int64_t until_ms = clock_mono_ms() + LEAVE_BUDGET_MS;

	run_let_go(r);
	/* One that does not take it has just ended, or died: the folder tells a later host. */
	list_each(node, &r->live)(void)
		run_tell_kill(list_entry(node, struct run_task, node), PROTO_KILL_DISCARD);
	discard_quickly(&r->dropped, until_ms);
	discard_quickly(&r->ended, until_ms);
}
