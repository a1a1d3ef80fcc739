/* SPDX-License-Identifier: MIT */
/*
 * run.h - the host's side of errand-shim: start, watch, read and end processes.
 *
 * A struct run owns one folder, <state>/tasks, and the connections to the shims under it.
 * It knows no errand_host: the producers beside it (bash.c) tie the two together. It has no
 * loop of its own: when run_fd() is readable, or run_deadline() has come, call run_turn().
 *
 * Starting is split in two. run_start() only writes the plan down; run_flush() makes the run
 * folder and spawns the shim. So a host can make its rows durable, and send the id on its
 * way, before a process exists. A kill in between is kept and obeyed. So is forgetting:
 * run_drop() forgets, run_flush() deletes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct buf;
struct rlimit;
struct run;
struct run_task; /* one task's shim; owned by the struct run until run_drop() */

/* What a client hands on to its tasks. Borrowed during the call. */
struct run_context {
	const char *cwd;        /* absolute; NULL: it is gone */
	const char *const *env; /* NULL-terminated "NAME=value" */
	mode_t umask;
	/* Resource limits, by their numbers; NULL: whatever this process has. */
	const struct rlimit *limits;
	size_t n_limits;
};

struct run_spec {
	const char *const *argv; /* argv[0] is looked up in the task's PATH */
	const struct run_context *context;
	const char *workdir;         /* NULL: context->cwd; relative to it otherwise */
	int64_t deadline_ms;         /* 0: none */
	int64_t grace_ms;            /* between SIGTERM and SIGKILL */
	uint64_t log_head, log_tail; /* bytes kept of the output's front and end */
	bool has_input; /* a pipe at its stdin, for run_input(); else that is empty */
};

/* Why it ended: the typed cause of design, as the shim recorded it. */
enum run_cause {
	RUN_EXIT,        /* by itself, with an exit code */
	RUN_SIGNAL,      /* a signal nobody here asked for */
	RUN_OOM,         /* the kernel's, for want of memory */
	RUN_KILL,        /* after run_kill(), or of a signal of run_signal() */
	RUN_DEADLINE,    /* after its deadline */
	RUN_NOT_STARTED, /* exec, workdir, fork ... failed */
	RUN_LOST,        /* nobody saw the end */
};

struct run_end {
	enum run_cause cause;
	int wait_status;     /* as of waitpid; of no meaning for NOT_STARTED and LOST */
	char why[200];       /* NOT_STARTED, LOST: the reason, one line */
	int64_t deadline_ms; /* DEADLINE: the limit that passed */
	uint64_t bytes_seen, bytes_dropped;
	/* EXIT, SIGNAL: in the task's session or with its pipe; KILL, DEADLINE: not to be ended. */
	uint32_t processes_left;
	int32_t left_pid, left_uid; /* one of them */
	uint32_t
		detached_left; /* own session, none of the task's descriptors: not counted above */
	bool never_ran;        /* LOST: and it never will */
	bool is_unproved;             /* KILL, DEADLINE: nobody could count what is left */
	int64_t started_ms, ended_ms; /* wall */
	int64_t took_ms;              /* monotonic; 0: no shim has recorded it */
	uint64_t cpu_us, peak_kib;    /* of the main process and what it waited for */
	int log_errno;       /* why the log stopped before the task; 0: it did not */
	uint64_t memory_hit; /* OOM: the task's limit; 0: the machine's memory was full */
	uint64_t
		processes_hit; /* the limit at which the task could not fork; 0: it could */
};

/* [from run_turn, run_flush, run_refuse] The end is on disk. Exactly once for each task started. */
typedef void (*run_end_fn)(void *ud, struct run_task *t, const struct run_end *end);

/*
 * @folder must exist (0700); <folder>/tasks is made. @shim: path of errand-shim. The process
 * ignores SIGCHLD from here on: shims tell their ends themselves, and nobody waits for them.
 */
int run_new(const char *folder, const char *shim, struct run **ret, struct err *err);
/* Forgets everything; kills nothing. NULL is fine. */
void run_free(struct run *r);

/* ---- limits of each task ---- */

enum run_limit {
	RUN_MEMORY, /* bytes */
	RUN_PROCESSES,
	RUN_CPU, /* percent of one */
	RUN_LIMITS,
};

/*
 * Start tasks under @limits from now on; 0: none. That takes a control group (version 2) which is
 * this process' own: it moves into a group below it, and each task gets one beside that. Returns
 * those that hold, as bits 1 << RUN_MEMORY ...; of others @err says why not. A task whose
 * group cannot be had later does not start.
 */
unsigned run_limit(struct run *r, const int64_t limits[RUN_LIMITS], struct err *err);
/* The same with the folder @groups, which is taken. */
unsigned run_limit_in(struct run *r, int groups, const int64_t limits[RUN_LIMITS],
		      struct err *err);
/* What the host with this @pid can hold, as such bits, and in @err why nothing else. */
unsigned run_can_limit(pid_t pid, struct err *err);

/* The @ud of the task that has this shim, or this name; NULL: none has. */
void *run_of_shim(const struct run *r, pid_t shim);
void *run_of_uid(const struct run *r, const char *uid);
/* Is there a task that has not ended? */
bool run_is_busy(const struct run *r);

int run_fd(const struct run *r);           /* readable when run_turn() has work */
int64_t run_deadline(const struct run *r); /* monotonic ms, INT64_MAX: none */
void run_turn(struct run *r, int64_t mono_ms);

/* Plan a task. ERR_ARG with a text for the model: workdir, NUL in an argument, size.
 * Nothing has been made on failure. Never calls @fn inside. */
int run_start(struct run *r, const struct run_spec *spec, run_end_fn fn, void *ud,
	      struct run_task **ret, struct err *err);
/*
 * Take over the run folder <folder>/tasks/@uid, which another host, dead by now, has made.
 * From the next turns on: if its shim lives, the task is live; if it has ended, its record
 * is told; if nobody lives there and nobody can be born any more, it is lost. A shim that is
 * just being born is waited for. ERR_ARG: @uid is not one.
 */
int run_attach(struct run *r, const char *uid, run_end_fn fn, void *ud,
	       struct run_task **ret, struct err *err);
/* Is @s what a run folder is called? */
bool run_is_uid(const char *s);
/* The name of its run folder. Borrowed. */
const char *run_uid(const struct run_task *t);

/* What was decided so far is durable: delete the folders of what was dropped, spawn what was
 * planned. A spawn that fails ends the task with RUN_NOT_STARTED. */
void run_flush(struct run *r);
/* Nothing of what is planned may begin: each ends with RUN_NOT_STARTED, and @why. */
void run_refuse(struct run *r, const char *why);

/*
 * Ask for the end of the whole tree: SIGTERM, grace, SIGKILL. Idempotent. After the end it
 * sweeps what outlived the main process in its session or with its pipe.
 */
void run_kill(struct run_task *t);

/* ---- requests to a task's shim ---- */

struct run_process {
	int32_t pid;
	uint64_t ticks;   /* start time */
	bool is_detached; /* own session, none of the task's descriptors */
};

struct run_answer {
	int rc;          /* 0, or -ERR_*: then @why says it in one line */
	const char *why; /* NULL if it was done */
	size_t taken;   /* run_input: bytes; fewer than given: now there is room for more */
	uint32_t found; /* run_sweep: living processes when it began */
	uint32_t attached, detached;         /* run_sweep, run_leftovers: living ones now */
	const struct run_process *processes; /* run_leftovers: the first of them */
	size_t n_processes;
};

/*
 * [from run_turn, run_flush] Once for each request that was taken, unless the host leaves before.
 * An @a->rc of -ERR_STATE: not now, or not for this task; -ERR_SYS: the shim went before it
 * answered, or the task was dropped. What @a points at is borrowed.
 */
typedef void (*run_answer_fn)(void *ud, struct run_task *t, const struct run_answer *a);

/*
 * Each is sent at once and returns 0, or says why there is nobody to ask: -ERR_STATE, not
 * started yet; -ERR_NOT_FOUND, ended with nothing left; -ERR_LIMIT, too much has not been
 * answered yet.
 * @fn may be NULL.
 */
/* Signal @sig to the main process, or to the whole tree. */
int run_signal(struct run_task *t, int sig, bool is_for_tree, run_answer_fn fn, void *ud,
	       struct err *err);
/* Bytes for its stdin. The answer comes when it has taken some, or never will. */
int run_input(struct run_task *t, const void *bytes, size_t len, run_answer_fn fn, void *ud,
	      struct err *err);
int run_close_input(struct run_task *t, run_answer_fn fn, void *ud, struct err *err);
/* A new deadline, @in_ms from now; 0: none any more. */
int run_extend(struct run_task *t, int64_t in_ms, run_answer_fn fn, void *ud,
	       struct err *err);
/* End what outlived an ended task, @detached ones as well. The answer comes afterwards. */
int run_sweep(struct run_task *t, bool detached, run_answer_fn fn, void *ud,
	      struct err *err);
/* Who is in its tree: while it lives, all; then what outlived it. */
int run_leftovers(struct run_task *t, run_answer_fn fn, void *ud, struct err *err);

/* ---- for people ---- */

struct run_usage {
	uint64_t cpu_ms, memory_kib; /* of those that live, and of what they waited for */
	size_t processes;
};

/* False: it does not live, or /proc does not tell. */
bool run_usage(const struct run_task *t, struct run_usage *ret);
/* When its log grew last, wall ms; 0: it has none. */
int64_t run_quiet_since(const struct run_task *t);

/* ---- the log ---- */

/* Offsets count every byte the task ever printed. */
uint64_t run_log_end(struct run_task *t);
/* The same; *@ret_kept is behind the last byte that is still there, 0: none is. */
uint64_t run_log_ends(struct run_task *t, uint64_t *ret_kept);
/*
 * Append up to @max bytes from offset @from to @out. *@ret_from is where they really begin:
 * later than @from if what stood there was dropped or never kept.
 */
int run_log_read(struct run_task *t, uint64_t from, size_t max, struct buf *out,
		 uint64_t *ret_from, struct err *err);
/* How many bytes of [@from, @to) are not there: dropped, or never kept. */
uint64_t run_log_missing(struct run_task *t, uint64_t from, uint64_t to);
/* Why nothing more of a live task's output is kept: errno, or 0. */
int run_log_error(const struct run_task *t);
/* Path of `out` while the whole log is in it, else NULL. Borrowed until the next call. */
const char *run_log_path(struct run_task *t);

/* Forget an ended task; run_flush() deletes its folder and sweeps what outlived it. A live one
 * is only forgotten. Who waits for an answer of its shim hears it in run_flush(). */
void run_drop(struct run_task *t);
/* The run folder of a task that a dead host had dropped goes, unless its shim is still there. */
void run_discard(struct run *r, const char *uid);
/* The host leaves, and what it has is for the next one: from here on run_drop() only forgets. */
void run_let_go(struct run *r);
/* The host leaves: every live task is asked to end and to delete its folder. Quick, as
 * run_drop() is from then on: it only forgets. What is left is for the next host. */
void run_leave(struct run *r);
