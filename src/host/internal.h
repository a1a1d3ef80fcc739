/* SPDX-License-Identifier: MIT */
/*
 * internal.h - what the files of a host share.
 *
 *      client -- transport -- door --.
 *      client -- transport -- door -- core -- bash -- run -- errand-shim
 *            timer, signals --- turn --'
 *
 *      host.c       the loop, the turn, start and end of what every host has
 *      embedded.c   the host inside `errand mcp`: one client, on stdin and stdout
 *      daemon.c     the host as a process of its own: socket, many clients, idle time
 *      client.c     one client, from its connection to its end
 *      door_*.c     how a client's lines are taken: MCP, a hello, an operator's requests
 *      handover.c   one daemon after another
 *      owners.c     names and agents
 *      journal.c    what must not be forgotten, into the store and back
 *      audit.c      who did what
 *      import.c     tasks that nobody looks after
 *      judge.c      the operator's program that is asked before each tool call
 *
 * All of it is driven by host_turn(): the core runs until it has nothing to do, replies leave,
 * and only then are new processes spawned. So an id is on its way before its process is.
 */
#pragma once

#include <stdatomic.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "errand.h"
#include "host/config.h"
#include "host/context.h"
#include "host/hello.h"
#include "host/owners.h"
#include "host/state.h"

struct ask;
struct client;
struct err;
struct host;
struct journal;
struct judge;

#define HOST_SIGNALS 3
/* The session of the agent of all operators. */
#define HOST_OPERATOR "~operator"

/* What an embedded host and a daemon do differently. */
struct host_type {
	void (*client_gone)(
		struct host *h); /* a client has gone, or will in the next turn */
	int64_t (*deadline)(struct host *h); /* of its own; INT64_MAX: none */
	void (*tick)(struct host *h, int64_t mono_ms);
};

struct host {
	const struct host_type *type;
	uv_loop_t loop;
	uv_timer_t timer;
	uv_poll_t run_poll;
	uv_signal_t signals[HOST_SIGNALS];
	bool is_polling_run, is_turning;
	bool makes_way; /* for a newer daemon, when the turn has ended */
	atomic_bool is_leaving;
	int exit_code;
	int64_t armed_ms;   /* INT64_MAX: the timer is off */
	int64_t began_ms;   /* wall */
	int64_t give_up_ms; /* on clients of the host before us that do not come back */

	struct config config;
	struct state state;
	errand_host *core;
	struct owners owners;
	struct journal *journal;  /* NULL: what happens is not kept */
	errand_agent operator;    /* 0: not needed yet */
	const struct ask *asking; /* whose errand_kill() this is; NULL: the core's own */
	struct run *run;
	struct bash *bash;
	struct mcp_server *server;
	struct judge *judge; /* NULL: nobody is asked */
	struct list clients;
	struct map callers; /* errand_call -> struct client, of calls that are not MCP's */
};

/* ---- host.c ---- */

/* Loop, timer, signals; always to be followed by host_finish(). */
int host_init(struct host *h, const struct host_type *type, struct err *err);
/* Configuration, core, producers. h->state is open by then. */
int host_start(struct host *h, struct err *err);
void host_finish(struct host *h);
void host_turn(struct host *h);
/* What was to be kept is. */
void host_durable(struct host *h);
/* A line for whoever runs the host. */
void host_say(const char *text);
/* Leave, and not in good order. */
void host_fail(struct host *h);
/* End the loop; nothing is begun any more. */
void host_leave(struct host *h);
/* The agent of all operators. */
int host_operator(struct host *h, errand_agent *ret, struct err *err)
	__attribute__((warn_unused_result));

/* ---- client.c ---- */

/* How the lines of a client are taken. Changes as a connection becomes a conversation. */
struct door {
	void (*line)(struct client *c, const char *line, size_t len);
	void (*too_long)(struct client *c);
	/* The line with this token has been taken by the client's pipe. */
	void (*sent)(struct client *c, uint64_t token);
	/* The client is gone: drop what the conversation holds. */
	void (*close)(struct client *c);
	int64_t (*deadline)(const struct client *c); /* NULL: never */
	void (*tick)(struct client *c, int64_t mono_ms);
};

struct client {
	struct list node;
	struct host *host;
	const struct door *door;
	struct transport *transport;
	bool is_gone;     /* freed in the turn that is under way, or the next */
	bool is_answered; /* once and for all: refused, or granted all it wanted */
	bool is_leaving;  /* it has said bye, and is to hear it behind its last answer */

	struct hello hello; /* its context is what the client hands on to tasks */
	char *owner;        /* the client's own name; NULL: it has none, or not yet */
	bool is_resuming;   /* that had tasks when it came */
	pid_t pid;

	/* door_mcp.c */
	struct mcp *mcp;
	struct map unacked; /* number of a line -> token of its answer */
	bool is_kept;       /* the client was told to repeat its handshake */
	/* door_operator.c */
	errand_agent agent; /* in whose name it asks */
	struct list asks;   /* struct ask, not answered yet */
};

/* Then enter a door, and set the transport. */
struct client *client_new(struct host *h);
/* A line to the client; its memory is taken. */
void client_send(struct client *c, struct buf *line, uint64_t token);
/* At once; for one that never had a door. */
void client_free(struct client *c);
/* The client is to go: in the next turn. */
void client_gone(struct client *c);
/* The events of a client's transport; ud is the client. */
extern const struct transport_events client_events;
/* The core has run: what could be answered has been. */
void clients_farewell(struct host *h);
void clients_flush(struct host *h);
/* Free those that are gone. */
void clients_reap(struct host *h);
int64_t clients_deadline(const struct host *h);
void clients_tick(struct host *h, int64_t mono_ms);
void clients_free(struct host *h);
/* How many have that name for their own; @ud: the host. */
size_t clients_named(void *ud, const char *name, size_t len);
/* The context of whoever made @call; NULL: it is gone. */
const struct run_context *client_context(void *host, errand_call call);

/* ---- the doors ---- */

/* MCP on stdin and stdout: a line is taken when the pipe has it. */
void door_stdio_enter(struct client *c);
/* MCP in numbered lines: a line is taken when the client says so. */
void door_numbered_enter(struct client *c);
/* The first line of a connection; leads to one of the others. */
void door_hello_enter(struct client *c, int fd);
void door_operator_enter(struct client *c);
