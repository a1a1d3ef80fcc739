/* SPDX-License-Identifier: MIT */
/*
 * shim.h - one task's keeper: everything it knows, and what can happen to it.
 *
 *	              kill, deadline              grace is over
 *	RUNNING ------------------------> STOPPING ------------> KILLING
 *	   |                                  |                     |
 *	   | main process reaped              | nothing is left     | the same, or bounded
 *	   v                                  v                     |
 *	DRAINING <--------------------------------------------------+
 *	   |
 *	   | end of output, or 250 ms: the record is written, made durable, then announced
 *	   v
 *	 ENDED ----> gone, when nothing is left to watch
 *	   |
 *	   +-- kill, sweep: STOPPING, KILLING and back, for what outlived the main process
 *
 * There is one of it in a process. Nothing is allocated once the task's process exists.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/child.h"
#include "shim/log.h"
#include "shim/proto.h"

enum state {
	RUNNING,
	STOPPING,
	KILLING,
	DRAINING,
	ENDED,
	N_STATES,
};

enum event {
	EV_MAIN_GONE,  /* the main process has been reaped */
	EV_REAPED,     /* some process has been, and others are there */
	EV_TREE_GONE,  /* no process is left */
	EV_OUTPUT_END, /* nobody holds the pipe any more */
	EV_TIMEOUT,    /* the state's own timer */
	EV_DEADLINE,
	EV_KILL,      /* after the end: a sweep of what is attached */
	EV_SWEEP_ALL, /* after the end: of everything */
	N_EVENTS,
};

/* The host that started it, and those that came through the socket. */
#define SHIM_HOSTS 32

struct shim_host {
	int fd; /* -1: a free slot */
	/* Requests whose replies wait until they are done. */
	bool is_sweeping, is_filling;
	uint32_t sweep_serial, sweep_found;
	uint32_t input_serial, input_taken;
};

struct shim {
	enum state state;
	struct proto_spec spec; /* without its texts, once the task runs */
	struct child_names names;
	struct proto_record record;
	struct log log;

	int lock_fd, status_fd, report_fd;
	int output_fd; /* the pipe's reading end; -1 after its end */
	int epoll_fd, signal_fd, listen_fd;
	int stdin_fd; /* the pipe's writing end; -1: there is none, or it is closed */
	int groups_fd, group_fd; /* of the control groups, and the task's own; -1: none */
	struct shim_host hosts[SHIM_HOSTS];
	unsigned n_slots; /* as many of them as the limit of descriptors bears */

	int64_t timer_ms;      /* monotonic; INT64_MAX: none */
	int64_t deadline_ms;   /* the same */
	int64_t kill_until_ms; /* then a kill is recorded as incomplete */
	int64_t pause_ms;      /* between two looks at what is left; grows */
	int64_t started_mono_ms;

	bool is_main_gone, is_tree_gone;
	bool is_kill_asked;  /* the tree goes, whatever that takes */
	bool is_sweep_asked; /* after the end: what is attached goes */
	bool is_sweep_all;   /* and what is detached */
	bool is_sweep_due;   /* asked for while the end was being recorded */
	bool is_discarded;   /* the folder goes, too */
	bool is_stdin_closing, is_stdin_watched;
	bool is_done;
};

/* state.c: the next state, for one event. */
void shim_handle(struct shim *s, enum event ev);
/* True if the table has a cell for it: all of them must. */
bool shim_knows(enum state state, enum event ev);

/* output.c: move what the pipe holds into the log, within a turn's budget. True: its end. */
bool shim_pump(struct shim *s);

/* record.c */
int shim_record_open(struct shim *s); /* 0, or -ERR_STATE: void; -ERR_SYS: errno */
int shim_record_write(struct shim *s);
/* Write the record of the end, make it durable, then tell the hosts. */
void shim_announce(struct shim *s);

/* hosts.c */
void shim_hosts_init(struct shim *s);
void shim_hosts_accept(struct shim *s);
void shim_hosts_receive(struct shim *s, unsigned slot);
void shim_hosts_tell_end(struct shim *s);
void shim_hosts_reply(struct shim *s, unsigned slot, const struct proto_reply *r);

/* request.c */
void shim_request(struct shim *s, unsigned slot, const struct proto_packet *p);

/* input.c: *@ret_theirs is what the task reads from, -1 if it is to have no input. */
bool shim_input_open(struct shim *s, int *ret_theirs);
void shim_input(struct shim *s, unsigned slot, const struct proto_request *q);
void shim_input_flush(struct shim *s);
void shim_input_close(struct shim *s);

/* group.c: false: the task has a group, and cannot be put into it. Else *@ret_procs is what its
 * process writes to; -1: it has none. */
bool shim_group_open(struct shim *s, int *ret_procs);
/* What it has run into goes into the record. */
void shim_group_note(struct shim *s);
void shim_group_remove(const struct shim *s);

/* leftovers.c */
struct tree_scope shim_victims(const struct shim *s);
bool shim_is_swept(const struct shim *s);    /* nobody who is to be swept is left */
bool shim_is_released(const struct shim *s); /* there is nothing to stay for */
void shim_note_left(struct shim *s);
void shim_list(const struct shim *s, struct proto_reply *r);
uint32_t shim_count_for_sweep(const struct shim *s, bool is_all);
void shim_answer_sweeps(struct shim *s);

/* loop.c */
int shim_watch(struct shim *s, int fd, uint32_t events, uint32_t source, uint32_t slot);
/* The socket that hosts come to: @op adds it, or looks once more who is there. */
int shim_watch_door(struct shim *s, int op);
void shim_loop(struct shim *s);

enum shim_source {
	SOURCE_OUTPUT,
	SOURCE_SIGNAL,
	SOURCE_LISTEN,
	SOURCE_HOST,
	SOURCE_STDIN,
};

/* start.c: from a fresh process to a running task. False: there is nothing to watch. */
bool shim_start(struct shim *s);
/* Put the folder into its last state: no socket, and nothing at all if it is discarded. */
void shim_leave(struct shim *s);
