/* SPDX-License-Identifier: MIT */
/*
 * proto.h - what errand-shim and its hosts agree on, version 1.
 *
 * Three things: the names of the files in a run folder, the packets on a shim's socket
 * (SOCK_SEQPACKET, one struct each), and the bytes of the files `spec` and `status`. All
 * numbers are little-endian. A host must be able to speak to a shim that is older than
 * itself, so nothing here changes within a version; new kinds of packets are ignored by
 * who does not know them.
 *
 *	host                           shim
 *	mkdir, spec, fork   ------->   lock, status, sock, out; unlink spec; start
 *	                    <-------   hello
 *	requests            ------->   ...
 *	                    <-------   a reply to each
 *	kill                ------->   SIGTERM, grace, SIGKILL
 *	                               status (durable)
 *	                    <-------   ended; closes if nothing is left to watch
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct buf;

#define PROTO_VERSION 1

/* ---- the run folder ---- */

#define PROTO_SPEC "spec"     /* what to run; gone once it is read */
#define PROTO_OUT "out"       /* the log's front */
#define PROTO_OUT_TAIL "out." /* + decimal offset: a piece of the log's end */
#define PROTO_STATUS "status" /* two records, each in a page of its own */
#define PROTO_LOCK "lock"     /* flock: held while the shim lives */
#define PROTO_SOCK "sock"

#define PROTO_UID_LEN 32 /* the folder's name: 128 random bits in hex */

/* Descriptors that a shim is born with. */
enum {
	PROTO_FOLDER_FD = 3,
	PROTO_HOST_FD = 4,
	/* Where the host limits its tasks: the folder of their control groups, in which that of
	 * this one has its uid as its name. Need not be open; a shim that does not know it closes it. */
	PROTO_GROUPS_FD = 5,
	PROTO_FIRST_FREE_FD = 6,
};

/* ---- the status record ---- */

enum proto_state {
	PROTO_STARTING = 1, /* nothing has been forked yet */
	PROTO_RUNNING,
	PROTO_ENDED,
	PROTO_VOID, /* written by a host: nothing may be started here any more */
};

enum proto_cause {
	PROTO_CAUSE_NONE,
	PROTO_CAUSE_EXIT,
	PROTO_CAUSE_SIGNAL, /* nobody here asked for it */
	PROTO_CAUSE_KILL, /* somebody asked: by KILL, or by SIGNAL for the one it died of */
	PROTO_CAUSE_DEADLINE,
	PROTO_CAUSE_NOT_STARTED,
};

/* Flags of a record. */
#define PROTO_ATTACHED_LEFT                                                                \
	1u /* the main process is gone, others use its session or pipe */
#define PROTO_LOG_CUT_SHORT 2u /* the drain ended before the end of the output */
#define PROTO_NOT_PROVED 4u    /* killed, but without /proc nobody can count what is left */
#define PROTO_OTHERS_LEFT 8u   /* what is left and not attached, or cannot be told apart */

typedef uint32_t proto_u32;
typedef uint64_t proto_u64;
typedef int32_t proto_i32;
typedef int64_t proto_i64;

/* The numbers of a record in their order in the file. */
#define PROTO_RECORD_FIELDS(F)                                                             \
	F(u64, seq)   /* the higher one of two is the newer */                             \
	F(u32, state) /* enum proto_state */                                               \
	F(u32, cause) /* enum proto_cause */                                               \
	F(u32, flags) /* PROTO_ATTACHED_LEFT ... */                                        \
	F(i32, shim_pid)                                                                   \
	F(i32, pid)         /* the main process; 0 before it */                            \
	F(i32, wait_status) /* as waitpid gives it */                                      \
	F(u64, shim_ticks)  /* start times, in clock ticks since boot */                   \
	F(u64, ticks)                                                                      \
	F(i64, deadline_ms) /* 0: none */                                                  \
	F(i64, started_ms)  /* wall clock */                                               \
	F(i64, ended_ms)                                                                   \
	F(i64, took_ms)    /* monotonic clock */                                           \
	F(u64, bytes_seen) /* of output */                                                 \
	F(u64, bytes_kept) /* in `out` and its tail */                                     \
	F(u64, bytes_dropped)                                                              \
	F(u64, cpu_us)         /* of the main process and what it waited for */            \
	F(u64, peak_kib)       /* the largest of these */                                  \
	F(u32, log_errno)      /* why the log stopped; 0: it did not */                    \
	F(u32, processes_left) /* attached ones; after a kill: what it could not end */    \
	F(i32, left_pid)       /* one of them */                                           \
	F(i32, left_uid)                                                                   \
	F(u32, detached_left) /* those that have cut all ties */                           \
	F(i32, detached_pid)  /* one of them */                                            \
	F(u64, signals)       /* that hosts had delivered: bit N - 1 is signal N */

#define PROTO_WHY_LEN 200

/*
 * Those behind the reason, in what was free and 0: who does not know them skips them, and a
 * record that lacks them has them as 0. New ones come last.
 */
#define PROTO_RECORD_MORE(F)                                                               \
	F(u64, memory_hit)    /* the limit of memory that it was killed at */              \
	F(u64, processes_hit) /* the limit of processes that a fork of it has met */

/* In memory_hit: the whole machine had no memory left. */
#define PROTO_MACHINE UINT64_MAX

struct proto_record {
#define PROTO_MEMBER(type, name) proto_##type name;
	PROTO_RECORD_FIELDS(PROTO_MEMBER)
	PROTO_RECORD_MORE(PROTO_MEMBER)
#undef PROTO_MEMBER
	uint8_t boot_id[16];
	char why[PROTO_WHY_LEN]; /* NOT_STARTED: the reason, one line */
};

#define PROTO_RECORD_SIZE 512
/* Apart by a page: a write that is torn by a power cut cannot reach the other one. */
#define PROTO_SLOT_DISTANCE 4096
#define PROTO_STATUS_SIZE ((size_t)2 * PROTO_SLOT_DISTANCE)

void proto_put_record(uint8_t out[PROTO_RECORD_SIZE], const struct proto_record *r);
/* -ERR_FORMAT: never written, torn, or of another version. */
int proto_get_record(const uint8_t *bytes, size_t len, struct proto_record *ret)
	__attribute__((warn_unused_result));

/* Read the newest whole record. -ERR_NOT_FOUND: the file holds none. */
int proto_read_status(int fd, struct proto_record *ret) __attribute__((warn_unused_result));
/* Write @r as the next record after @r->seq; raises that. Not yet durable. -ERR_SYS: errno. */
int proto_write_status(int fd, struct proto_record *r) __attribute__((warn_unused_result));

/* ---- packets ---- */

enum proto_type {
	PROTO_MSG_HELLO = 1, /* shim: who I am; first of all, to every host */
	PROTO_MSG_KILL =
		2, /* host: end the tree; on an ended task: what is attached to it */
	PROTO_MSG_ENDED = 3, /* shim: the record, which is durable; to every host */
	PROTO_MSG_SIGNAL = 4,
	PROTO_MSG_INPUT = 5,
	PROTO_MSG_RESIZE = 6,
	PROTO_MSG_SWEEP = 7,
	PROTO_MSG_EXTEND = 8,
	PROTO_MSG_LIST = 9,
	PROTO_MSG_REPLY = 10, /* shim: exactly one to each request that it knows */
};

/* Flags of requests. */
#define PROTO_KILL_DISCARD                                                                 \
	1u                   /* KILL: release what is detached, and delete the run folder */
#define PROTO_SIGNAL_TREE 1u /* SIGNAL: every process of the tree, not only the main one */
#define PROTO_INPUT_CLOSE 1u /* INPUT: and nothing comes after these bytes */
#define PROTO_SWEEP_ALL 1u   /* SWEEP: what is detached as well */

#define PROTO_INPUT_MAX 4096 /* bytes in one packet */

struct proto_hello {
	int32_t shim_pid, pid;
	uint64_t ticks;
	uint32_t state; /* enum proto_state */
};

/* All that a host can ask for has one form. */
struct proto_request {
	uint32_t serial; /* the host's own; its reply repeats it */
	uint32_t flags;
	/* SIGNAL: its number. EXTEND: milliseconds from now, 0: no deadline any more. RESIZE:
	 * rows, and columns in the bits from 16 on. Else 0. */
	int64_t value;
	uint32_t len; /* INPUT: these bytes, borrowed from the packet */
	const uint8_t *bytes;
};

/* What became of a request. */
enum proto_result {
	PROTO_DONE,
	PROTO_HAS_ENDED,    /* there is no main process any more */
	PROTO_STILL_RUNS,   /* a sweep is for an ended task */
	PROTO_IS_ENDING,    /* killed, or past its deadline, already */
	PROTO_NO_STDIN,     /* started without a pipe at its stdin */
	PROTO_STDIN_CLOSED, /* by a host, or by the task */
	PROTO_STDIN_FULL,   /* @taken bytes were taken; there is room for more now */
	PROTO_NO_TERMINAL,
	PROTO_BUSY,        /* the same host's last one of this kind has no reply yet */
	PROTO_BAD_VALUE,   /* no such signal, no such time */
	PROTO_NOT_ALLOWED, /* the kernel refuses: it has become another user's */
	PROTO_NOT_COUNTED, /* nobody can look without a /proc */
};

struct proto_process {
	int32_t pid;
	uint32_t is_detached; /* own session, none of our descriptors */
	uint64_t ticks;       /* start time */
};

#define PROTO_LIST_MAX 200

struct proto_reply {
	uint32_t serial;
	uint32_t result;             /* enum proto_result */
	uint32_t taken;              /* INPUT: bytes */
	uint32_t found;              /* SWEEP: living ones when it began */
	uint32_t attached, detached; /* LIST, SWEEP: living ones now */
	uint32_t n_listed;           /* LIST: the first PROTO_LIST_MAX of them */
	struct proto_process listed[PROTO_LIST_MAX];
};

struct proto_packet {
	uint32_t type; /* enum proto_type; an unknown one has nothing else */
	union {
		struct proto_hello hello;
		struct proto_record ended;
		struct proto_request request;
		struct proto_reply reply;
	};
};

#define PROTO_HEADER_SIZE 12
#define PROTO_REQUEST_SIZE 16
#define PROTO_PACKET_MAX (PROTO_HEADER_SIZE + PROTO_REQUEST_SIZE + PROTO_INPUT_MAX)

bool proto_is_request(uint32_t type);
/* Returns the packet's length. */
size_t proto_put_packet(uint8_t out[PROTO_PACKET_MAX], const struct proto_packet *p);
int proto_get_packet(const uint8_t *bytes, size_t len, struct proto_packet *ret)
	__attribute__((warn_unused_result));

/* ---- the spec file ---- */

/* A resource limit as the kernel numbers and counts it: all bits set is no limit. */
struct proto_limit {
	uint32_t resource;
	uint64_t soft, hard;
};

#define PROTO_LIMITS_MAX 32 /* Linux has 16 */

/* Flags of a spec; all others are refused. */
#define PROTO_SPEC_STDIN 1u /* a pipe at its stdin, for INPUT; else that is empty */

struct proto_spec {
	char uid[PROTO_UID_LEN + 1];
	uint8_t boot_id[16];
	uint32_t flags; /* PROTO_SPEC_STDIN ... */
	uint32_t umask;
	int32_t oom_score_adj; /* of the task */
	int64_t deadline_ms;   /* 0: none */
	int64_t grace_ms;
	uint64_t log_head, log_tail;
	const char *cwd;
	char **argv, **env; /* NULL-terminated */
	size_t argc, envc;
	struct proto_limit limits[PROTO_LIMITS_MAX]; /* of the client, for the task */
	size_t n_limits;
};

int proto_put_spec(struct buf *out, const struct proto_spec *s)
	__attribute__((warn_unused_result));
/*
 * The strings of *@ret point into @bytes, its arrays into one block at @ret->argv: free
 * that. -ERR_FORMAT for anything that proto_put_spec() would not have written.
 */
int proto_get_spec(char *bytes, size_t len, struct proto_spec *ret)
	__attribute__((warn_unused_result));
