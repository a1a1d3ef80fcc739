/* SPDX-License-Identifier: MIT */
/*
 * host.c - start-up, the turn, and the end of an embedded host.
 *
 * It ends on EOF, on SIGINT, SIGTERM and SIGHUP and when the client's end of stdout is gone,
 * and has about 10 ms for it with some clients: every live task's shim is sent a kill, what
 * is empty is removed, and that is all.
 */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "errand.h"
#include "host/config.h"
#include "host/ident.h"
#include "host/owners.h"
#include "host/state.h"
#include "host/sweep.h"
#include "mcp/mcp.h"
#include "run/bash.h"
#include "run/run.h"
#include "transport/stdinout.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

struct host {
	uv_loop_t loop;
	uv_timer_t timer;
	uv_poll_t run_poll;
	uv_signal_t signals[N_SIGNALS];
	pthread_t sweeper;
	bool is_sweeping;
	atomic_bool is_leaving;
	bool is_polling_run;
	int64_t armed_ms; /* INT64_MAX: the timer is off */

	struct config config;
	struct state state;
	struct run_context context;
	struct rlimit limits[RLIM_NLIMITS]; /* the client's; ours are raised */
	char *cwd;
	char *owner; /* the client's own name */

	errand_host *core;
	struct owners owners;
	struct run *run;
	struct bash *bash;
	struct mcp_server *server;
	struct mcp *mcp;
	struct transport *client;
};

/* ---- the turn ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void on_timer(uv_timer_t *t);

static void arm(struct host *h)
{
	int64_t due = earlier(errand_next_deadline(h->core), run_deadline(h->run));
	int64_t now;

	due = earlier(due, mcp_deadline(h->mcp));
	if (due == h->armed_ms)
		return;
	h->armed_ms = due;
	if (due == INT64_MAX) {
		(void)uv_timer_stop(&h->timer);
		return;
	}
	uv_update_time(&h->loop);
	now = clock_mono_ms();
	(void)uv_timer_start(&h->timer, on_timer, due > now ? (uint64_t)(due - now) : 0, 0);
}

static bool has_work(const struct host *h)
{
	return errand_next_deadline(h->core) == INT64_MIN;
}

/* Work, answer, and only then spawn. */
static void turn(struct host *h)
{
	if (atomic_load(&h->is_leaving))
		return;
	do {
		while (errand_run(h->core, clock_mono_ms(), clock_wall_ms(), 0) > 0)
			;
		h->client->type->flush(h->client);
		/* Nothing is begun for a client that has just turned out to be gone. */
		if (!has_work(h) && !atomic_load(&h->is_leaving))
			run_flush(h->run);
	} while (has_work(h) && !atomic_load(&h->is_leaving));
	arm(h);
}

static void on_timer(uv_timer_t *t)
{
	struct host *h = t->data;
	int64_t now = clock_mono_ms();

	h->armed_ms = INT64_MAX;
	if (run_deadline(h->run) <= now)
		run_turn(h->run, now);
	mcp_tick(h->mcp, now);
	turn(h);
}

static void on_run(uv_poll_t *p, int status, int events)
{
	struct host *h = p->data;

	(void)status;
	(void)events;
	run_turn(h->run, clock_mono_ms());
	turn(h);
}

/* ---- the client ---- */

static void leave(struct host *h)
{
	atomic_store(&h->is_leaving, true);
	uv_stop(&h->loop);
}

static void on_signal(uv_signal_t *s, int number)
{
	(void)number;
	leave(s->data);
}

static void on_line(void *ud, const char *line, size_t len)
{
	struct host *h = ud;

	mcp_line(h->mcp, line, len, clock_mono_ms());
	/* Its tree was many times as long, and would stay with us as free memory. */
	if (len > MIB(1))
		(void)malloc_trim(0);
}

static void on_too_long(void *ud)
{
	struct host *h = ud;

	mcp_line_too_long(h->mcp);
}

static void on_turn(void *ud)
{
	turn(ud);
}

static void on_sent(void *ud, uint64_t token)
{
	struct host *h = ud;

	mcp_sent(h->mcp, token);
}

static void on_closed(void *ud)
{
	leave(ud);
}

static const struct transport_events client_events = {
	.line = on_line,
	.too_long = on_too_long,
	.turn = on_turn,
	.sent = on_sent,
	.closed = on_closed,
};

static void mcp_send(void *ud, struct buf *line, uint64_t token)
{
	struct host *h = ud;

	h->client->type->send(h->client, line, token);
}

static bool mcp_unsend(void *ud, uint64_t token)
{
	struct host *h = ud;

	return h->client->type->unsend(h->client, token);
}

static bool mcp_is_behind(void *ud)
{
	struct host *h = ud;

	return h->client->type->is_behind(h->client);
}

static int mcp_agent(void *ud, const char *owner, size_t len, errand_agent *ret,
		     struct err *err)
{
	struct host *h = ud;

	if (!owner) {
		owner = h->owner;
		len = strlen(owner);
	}
	return owners_agent(&h->owners, owner, len, ret, err);
}

static void mcp_killed_late(void *ud, const char *id, size_t len)
{
	struct host *h = ud;

	bash_sweep(h->bash, id, len);
}

static const struct mcp_ops client_ops = {
	.send = mcp_send,
	.unsend = mcp_unsend,
	.is_behind = mcp_is_behind,
	.agent = mcp_agent,
	.killed_late = mcp_killed_late,
};

/* ---- what the core and the producers ask for ---- */

static void warn(void *ud, const char *text, size_t len)
{
	(void)ud;
	fprintf(stderr, "errand: %.*s\n", (int)len, text);
}

static void message_id(void *ud, errand_sink *out)
{
	char text[IDENT_UUID + 1];

	(void)ud;
	ident_uuid(text);
	(void)errand_sink_write(out, text, IDENT_UUID);
}

static const struct run_context *context_of(void *ud, errand_agent agent)
{
	struct host *h = ud;

	(void)agent;
	return &h->context;
}

/* ---- start-up ---- */

static int start_core(struct host *h, struct err *err)
{
	struct errand_host_options o = {
		.size = sizeof(o),
		.abi = ERRAND_ABI,
		.warn = warn,
		.message_id = message_id,
		.ud = h,
	};
	char config[128], live[32] = "null";
	errand_error *e = NULL;
	errand_reg reg;
	int rc;

	if (h->config.live_tasks > 0)
		(void)snprintf(live, sizeof(live), "%lld", (long long)h->config.live_tasks);
	(void)snprintf(
		config, sizeof(config),
		"{\"maxConcurrentTasksPerOwner\":%s,\"maxFinishedTasksPerOwner\":%lld,"
		"\"unownedAccess\":\"operator\"}",
		live, (long long)h->config.finished_tasks);
	o.config_json = (errand_str){config, ERRAND_NUL};
	rc = errand_host_new(&o, &h->core, &e);
	if (rc == 0) {
		(void)snprintf(config, sizeof(config),
			       "{\"waitTimeoutMs\":%lld,\"maxWaitTimeoutMs\":%lld}",
			       (long long)h->config.wait_default_ms,
			       (long long)h->config.wait_max_ms);
		rc = errand_mount(h->core, 0, config, ERRAND_NUL, &reg, &e);
	}
	if (rc < 0) {
		(void)err_set(err, ERR_STATE, "cannot start: %.200s",
			      errand_error_message(e, NULL));
		errand_error_free(e);
		return -ERR_STATE;
	}
	h->owners.host = h->core;
	return 0;
}

static int start_bash(struct host *h, struct err *err)
{
	struct bash_config c = {
		.output_limit = (uint64_t)h->config.output_limit,
		.foreground_ms = h->config.foreground_ms,
		.grace_ms = h->config.grace_ms,
		.log_head = (uint64_t)h->config.log_head,
		.log_tail = (uint64_t)h->config.log_tail,
		.withheld = (const char *const *)h->config.withheld,
		.context = context_of,
		.ud = h,
	};
	autofree char *shim = ident_shim(err);
	errand_error *e = NULL;
	int rc;

	if (!shim)
		return -ERR_NOT_FOUND;
	rc = run_new(h->state.path, shim, &h->run, err);
	if (rc < 0)
		return rc;
	if (bash_install(h->core, h->run, &c, &h->bash, &e) < 0) {
		(void)err_set(err, ERR_STATE, "cannot offer bash: %.200s",
			      errand_error_message(e, NULL));
		errand_error_free(e);
		return -ERR_STATE;
	}
	return 0;
}

static int start_mcp(struct host *h, bool is_legacy_only, struct err *err)
{
	struct buf meta = BUF_INIT(KIB(32));
	struct mcp_server_options o = {
		.host = h->core,
		.version = ERRAND_VERSION,
		.is_legacy_only = is_legacy_only,
	};
	int rc;

	if (h->state.temporary) {
		buf_adds(&meta, "\"errand/state\":{");
		js_put_member(&meta, "folder", h->state.temporary,
			      strlen(h->state.temporary));
		buf_adds(&meta, ",\"temporary\":true}");
		o.start_meta = buf_text(&meta);
	}
	rc = mcp_server_new(&o, &h->server, err);
	buf_release(&meta);
	if (rc == 0)
		h->mcp = mcp_new(h->server, &client_ops, h);
	return rc;
}

static void *do_sweep(void *ud)
{
	struct host *h = ud;

	sweep(h->state.parent, &h->is_leaving);
	return NULL;
}

/* Where no thread can be had, a later host sweeps; the loop's own workers would abort. */
static void start_sweep(struct host *h)
{
	sigset_t all, before;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	h->is_sweeping = pthread_create(&h->sweeper, NULL, do_sweep, h) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int start_loop(struct host *h, struct err *err)
{
	int rc = stdinout_new(&h->loop, &client_events, h, &h->client, err);

	if (rc < 0)
		return rc;
	rc = uv_poll_init(&h->loop, &h->run_poll, run_fd(h->run));
	if (rc < 0)
		return err_sys(err, -rc, "cannot watch the tasks");
	h->is_polling_run = true;
	h->run_poll.data = h;
	(void)uv_poll_start(&h->run_poll, UV_READABLE, on_run);
	if (state_has_others(&h->state))
		start_sweep(h);
	return 0;
}

/* A live task costs a descriptor, and clients are often started with 1024. */
static void raise_fd_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur == r.rlim_max)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

/* What a client hands on to its tasks: what we were started with. */
static void take_context(struct host *h)
{
	h->cwd = getcwd(NULL, 0);
	h->context.cwd = h->cwd;
	h->context.env = (const char *const *)environ;
	h->context.umask = umask(077);
	(void)umask(h->context.umask);
	for (int i = 0; i < RLIM_NLIMITS && getrlimit(i, &h->limits[i]) == 0; i++)
		h->context.n_limits++;
	h->context.limits = h->limits;
}

static int start(struct host *h, const struct host_options *o, struct err *err)
{
	const char *state = o->state ? o->state : getenv("ERRAND_STATE");
	int rc = config_read(&h->config, environ, err);

	if (rc < 0)
		return rc;
	take_context(h);
	raise_fd_limit();
	h->owner = ident_owner(o->session);
	rc = state_open(&h->state, state && *state ? state : NULL, err);
	if (rc == 0)
		rc = start_core(h, err);
	if (rc == 0)
		rc = start_bash(h, err);
	if (rc == 0)
		rc = start_mcp(h, o->is_legacy_only, err);
	return rc < 0 ? rc : start_loop(h, err);
}

/* ---- the end ---- */

static void close_loop(struct host *h)
{
	if (h->client)
		h->client->type->close(h->client);
	if (h->is_polling_run)
		uv_close((uv_handle_t *)&h->run_poll, NULL);
	uv_close((uv_handle_t *)&h->timer, NULL);
	for (size_t i = 0; i < N_SIGNALS; i++)
		uv_close((uv_handle_t *)&h->signals[i], NULL);
	(void)uv_run(&h->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&h->loop);
}

static void finish(struct host *h)
{
	atomic_store(&h->is_leaving, true);
	if (h->state.path)
		state_disown(&h->state);
	/* The tasks first: it may be all that there is time for. */
	if (h->run)
		run_leave(h->run);
	mcp_free(h->mcp);
	close_loop(h);
	if (h->is_sweeping)
		(void)pthread_join(h->sweeper, NULL);
	errand_host_free(h->core);
	mcp_server_free(h->server);
	bash_free(h->bash);
	run_free(h->run);
	state_close(&h->state);
	owners_release(&h->owners);
	config_release(&h->config);
	mem_free(NULL, h->owner);
	free(h->cwd);
}

/* A file that is opened while one of the three is closed would take its place. */
static bool has_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return false;
	return true;
}

/* Whoever started us may have blocked what is to end us. */
static void take_signals(void)
{
	sigset_t ours;

	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ours);
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaddset(&ours, signals[i]);
	(void)sigprocmask(SIG_UNBLOCK, &ours, NULL);
}

int host_serve_stdio(const struct host_options *o)
{
	struct host h = {.armed_ms = INT64_MAX, .state = {.lock_fd = -1}};
	struct err err = {0};
	int rc;

	if (!has_standard_fds()) {
		fprintf(stderr, "errand: stdin, stdout and stderr have to be open\n");
		return 1;
	}
	rc = uv_loop_init(&h.loop);
	if (rc < 0) {
		fprintf(stderr, "errand: no event loop: %s\n", uv_strerror(rc));
		return 1;
	}
	take_signals();
	(void)uv_timer_init(&h.loop, &h.timer);
	h.timer.data = &h;
	for (size_t i = 0; i < N_SIGNALS; i++) {
		(void)uv_signal_init(&h.loop, &h.signals[i]);
		h.signals[i].data = &h;
		/* From here on also one that comes too early leaves nothing behind. */
		(void)uv_signal_start(&h.signals[i], on_signal, signals[i]);
	}
	owners_init(&h.owners);
	rc = start(&h, o, &err);
	if (rc == 0)
		(void)uv_run(&h.loop, UV_RUN_DEFAULT);
	else
		fprintf(stderr, "errand: %s\n", err.msg);
	finish(&h);
	if (rc == 0)
		return 0;
	return rc == -ERR_ARG ? 2 : 1;
}
