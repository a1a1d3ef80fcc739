/* SPDX-License-Identifier: MIT */
/*
 * internal.h - what the files of the host's side share. run.c owns the tasks' lives,
 * plan.c makes their specs, spawn.c their shims, request.c speaks to these, log.c reads what
 * they wrote (logfile.c), lost.c finds out what became of one that fell silent. group.c limits
 * what they use. reader.c needs none of them.
 */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "run/run.h"
#include "shim/proto.h"

/* How long after a deadline or a kill a shim may be late, and how often it is reminded. */
#define REMIND_MS 1000

enum run_phase {
	RUN_PLANNED,
	RUN_LIVE,   /* there is a shim, or there was one and nobody knows yet */
	RUN_SILENT, /* its socket has ended without a record */
	RUN_ENDED,
	RUN_DROPPED, /* its folder goes with the next run_flush() */
};

struct run {
	int tasks_fd; /* the folder that holds the run folders */
	int epoll_fd;
	int null_fd;
	char *tasks_path;
	char *shim;
	uint8_t boot_id[16];
	int oom_score_adj; /* of the tasks */
	int groups_fd;     /* the folder of their control groups; -1: they have none */
	int64_t limits[RUN_LIMITS];
	bool is_leaving;
	struct map by_id;
	uint64_t last_id;
	size_t n_due;                                      /* tasks that have a due_ms */
	struct list planned, live, silent, ended, dropped; /* of run_task.node */
};

struct run_task {
	struct list node;
	struct run *run;
	uint64_t id; /* in the epoll events: a task may go while one is on its way */
	enum run_phase phase;
	int sock; /* -1: not connected */
	char uid[PROTO_UID_LEN + 1];
	struct buf spec;     /* only while planned */
	int64_t deadline_ms; /* of the spec; 0: none, or another host's */
	bool is_kill_asked;
	bool is_left;   /* dropped while it lived: shim and folder are the next host's */
	pid_t shim_pid; /* 0: it has not said hello */
	uint64_t shim_ticks; /* when it had that number */
	run_end_fn fn;
	void *ud;
	uint32_t last_serial;
	struct list requests; /* not answered yet, the oldest first */
	unsigned n_requests;
	/* Its shim must have begun to end it by then; INT64_MAX: nothing is due. By run_set_due(). */
	int64_t due_ms;

	uint64_t log_head;
	uint64_t log_known;     /* where the log has been seen to end, */
	uint64_t log_kept;      /* and what is there of it */
	bool is_log_closed;     /* nobody writes to it any more, */
	bool is_log_final;      /* and these two were looked at since */
	uint64_t seen, dropped; /* of an ended task */
	char *log_path;

	int64_t retry_ms, pause_ms; /* SILENT: the next look */
	bool is_tried;              /* connected, and nothing heard since */
	unsigned rounds;            /* of the sweep; 0: it has not begun */
	int64_t give_up_ms;         /* 0: its folder could be looked into */
	const char *shut_name;      /* the last file of it that could not be opened, */
	int shut_errno;             /* and why */
	bool is_given_up;
	struct proto_record last; /* what the status said before */
};

/* plan.c: check @spec and write it down. */
int run_plan(struct run_task *t, const struct run_spec *spec, struct err *err);

/* spawn.c: folder, spec, shim. Its socket is t->sock. */
int run_spawn(struct run_task *t, struct err *err);
/* The same descriptor above those that a shim is born with: it can be copied to one of them. */
int run_lift(int fd);
/* Delete a run folder in which nobody lives, and its control group. */
void run_remove_folder(const struct run *r, const char *uid);

/* group.c: what the limits need for the task @uid; its control group, if nobody is left in it. */
int run_make_group(const struct run *r, const char *uid, struct err *err);
void run_remove_group(const struct run *r, const char *uid);

/* run.c: tell the end, once. @t may be gone afterwards. */
void run_settle(struct run_task *t, const struct run_end *end);
void run_settle_record(struct run_task *t, const struct proto_record *record);

void run_move(struct run_task *t, enum run_phase phase);
int run_watch(struct run_task *t, struct err *err);
void run_disconnect(struct run_task *t);
struct run_task *run_task_new(struct run *r, run_end_fn fn, void *ud);

/* request.c. False: there is no shim that could take it; its socket's end, or its folder,
 * says why. A stopped one takes it, too, and is woken. */
bool run_tell(const struct run_task *t, const struct proto_packet *p);
bool run_tell_kill(struct run_task *t, uint32_t flags);
void run_take_reply(struct run_task *t, const struct proto_reply *r);
/* Nobody will answer these any more, and @why. */
void run_fail_requests(struct run *run, uint64_t id, const char *why);
void run_forget_requests(struct run_task *t);
void run_set_due(struct run_task *t, int64_t due_ms);
/* When its deadline passes, as its status says; a kill may have come before. */
void run_note_due(struct run_task *t);
/* It was due, and the task lives on: perhaps it has stopped its shim. */
void run_remind(struct run_task *t, int64_t mono_ms);

/* attach.c: true if a shim listens in its folder; then it is live. */
bool run_connect(struct run_task *t);

/* lost.c: begin, and go on when retry_ms has come. Settles when it knows. */
void run_lost_begin(struct run_task *t);
void run_lost_look(struct run_task *t, int64_t mono_ms);
/* False: there is no whole record. */
bool run_read_status(const struct run_task *t, struct proto_record *ret);
void run_signal_shim(const struct run_task *t, int sig);
/* SIGKILL to every process with ERRAND_TASK=@uid that was born since @ticks. Returns how
 * many there were; *@ret_pid is one of them. */
unsigned run_lost_sweep(const char *uid, uint64_t ticks, int32_t *ret_pid);
