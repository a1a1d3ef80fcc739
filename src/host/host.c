/* SPDX-License-Identifier: MIT */
/* host.c - what every host has: loop, turn, core, producers, start and end. */
#include "host/internal.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/audit.h"
#include "host/ident.h"
#include "host/journal.h"
#include "host/judge.h"
#include "host/task_limits.h"
#include "mcp/mcp.h"
#include "run/bash.h"
#include "run/run.h"

/* Clients of a daemon that has died are back within seconds. */
#define COME_BACK_MS 60000

static const int signals[HOST_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* ---- the turn ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void on_timer(uv_timer_t *t);

static int64_t next_deadline(struct host *h)
{
	int64_t due = earlier(errand_next_deadline(h->core), run_deadline(h->run));

	if (h->journal)
		due = earlier(due, journal_deadline(h->journal));
	due = earlier(due, h->give_up_ms);
	due = earlier(due, clients_deadline(h));
	due = earlier(due, owners_deadline(&h->owners));
	return earlier(due, h->type->deadline(h));
}

static void arm(struct host *h)
{
	int64_t due = next_deadline(h), now;

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

/* A client that went may have left a fact behind. */
static bool has_more(const struct host *h)
{
	return has_work(h) || (h->journal && journal_has_more(h->journal));
}

static bool is_leaving(struct host *h)
{
	return atomic_load(&h->is_leaving);
}

static bool is_durable(struct host *h)
{
	return !h->journal || journal_sync(h->journal);
}

/*
 * All that has happened is durable: it may be told, and begun; while the disk takes nothing it
 * is told from memory, and nothing begins. A host that remembers begins
 * first: a start that was told would else be lost if it dies in between. One that does not
 * tells first, and begins nothing for a client that has just turned out to be gone.
 */
static void let_out(struct host *h)
{
	if (h->journal && !journal_trouble(h->journal))
		run_flush(h->run);
	clients_flush(h);
	if (is_leaving(h))
		return;
	clients_reap(h);
	if (!h->journal && !has_work(h))
		run_flush(h->run);
}

static void work(struct host *h)
{
	do {
		while (errand_run(h->core, clock_mono_ms(), clock_wall_ms(), 0) > 0)
			;
	} while (bash_make_room(h->bash) > 0);
	clients_farewell(h);
}

/*
 * Work, make it durable, answer, and only then spawn. While a commit is under way there is no
 * turn: what comes meanwhile waits for it, and is committed together.
 */
void host_turn(struct host *h)
{
	bool is_open = !h->is_turning && !(h->journal && journal_is_busy(h->journal));

	if (!is_open)
		return; /* the turn or the commit that is under way sees to it */
	h->is_turning = true;
	do {
		if (!is_leaving(h))
			work(h);
		is_open = !is_leaving(h) && is_durable(h);
		if (is_open)
			let_out(h);
	} while (is_open && has_more(h));
	h->is_turning = false;
	if (is_open && h->makes_way && !journal_trouble(h->journal))
		host_leave(h);
	if (!is_leaving(h))
		arm(h);
}

/* The disk takes nothing: everybody is told so while it lasts. */
static void tell_trouble(struct host *h)
{
	if (h->server && h->journal)
		mcp_server_unsaved(h->server, journal_trouble(h->journal));
}

/* What came meanwhile, an operator's kill or an acknowledgement, has its own commit first. */
void host_durable(struct host *h)
{
	if (is_leaving(h))
		return;
	tell_trouble(h);
	h->is_turning = true;
	if (is_durable(h))
		let_out(h);
	h->is_turning = false;
	host_turn(h);
	arm(h);
}

static void on_timer(uv_timer_t *t)
{
	struct host *h = t->data;
	int64_t now = clock_mono_ms();

	h->armed_ms = INT64_MAX;
	if (run_deadline(h->run) <= now)
		run_turn(h->run, now);
	clients_tick(h, now);
	owners_tick(&h->owners, now);
	if (h->journal)
		journal_tick(h->journal, now);
	if (h->give_up_ms <= now) {
		h->give_up_ms = INT64_MAX;
		bash_give_up(h->bash);
	}
	h->type->tick(h, now);
	host_turn(h);
}

static void on_run(uv_poll_t *p, int status, int events)
{
	struct host *h = p->data;

	(void)status;
	(void)events;
	run_turn(h->run, clock_mono_ms());
	host_turn(h);
}

void host_fail(struct host *h)
{
	h->exit_code = 1;
	host_leave(h);
}

void host_leave(struct host *h)
{
	atomic_store(&h->is_leaving, true);
	uv_stop(&h->loop);
}

static void on_signal(uv_signal_t *s, int number)
{
	(void)number;
	host_leave(s->data);
}

/* ---- what the core and the producers ask for ---- */

/* Of a log that is a file: then it begins anew. */
#define MAX_LOG MIB(1)

static void bound_log(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size > (off_t)MAX_LOG && ftruncate(STDERR_FILENO, 0) < 0)
		return;
}

void host_say(const char *text)
{
	bound_log();
	fprintf(stderr, "errand: %s\n", text);
}

static void warn(void *ud, const char *text, size_t len)
{
	(void)ud;
	bound_log();
	fprintf(stderr, "errand: %.*s\n", (int)len, text);
}

static void message_id(void *ud, errand_sink *out)
{
	char text[IDENT_UUID + 1];

	(void)ud;
	ident_uuid(text);
	(void)errand_sink_write(out, text, IDENT_UUID);
}

/* ---- start-up ---- */

/* In what the core or the producers say, for an operator. */
static int refused(struct err *err, const char *what, errand_error *e)
{
	(void)err_set(err, ERR_STATE, "%s: %.200s", what, errand_error_message(e, NULL));
	errand_error_free(e);
	return -ERR_STATE;
}

static int start_core(struct host *h, struct err *err)
{
	struct errand_host_options o = {
		.size = sizeof(o),
		.abi = ERRAND_ABI,
		.warn = warn,
		.message_id = message_id,
		.journal = h->journal ? journal_fact : NULL,
		.ud = h,
	};
	char config[128], live[32] = "null";
	errand_error *e = NULL;

	if (h->config.live_tasks > 0)
		(void)snprintf(live, sizeof(live), "%lld", (long long)h->config.live_tasks);
	(void)snprintf(
		config, sizeof(config),
		"{\"maxConcurrentTasksPerOwner\":%s,\"maxFinishedTasksPerOwner\":%lld,"
		"\"unownedAccess\":\"operator\"}",
		live, (long long)h->config.finished_tasks);
	o.config_json = (errand_str){config, ERRAND_NUL};
	if (errand_host_new(&o, &h->core, &e) < 0)
		return refused(err, "cannot start", e);
	h->owners.host = h->core;
	return 0;
}

/* Without them tasks run all the same; whoever runs the host is to know that. */
static void limit_tasks(struct host *h)
{
	autobuf struct buf missing = BUF_INIT(KIB(1));
	struct err why = {0};
	int64_t limits[RUN_LIMITS];

	task_limits_put(&h->config, 0, false, &missing);
	if (!missing.len)
		return;
	buf_clear(&missing);
	task_limits(&h->config, limits);
	task_limits_put(&h->config, run_limit(h->run, limits, &why), false, &missing);
	if (!missing.len)
		return;
	buf_addf(&missing, ": not held for any task, since %s; see `errand doctor`",
		 why.msg);
	host_say(buf_text(&missing));
}

static int start_bash(struct host *h, struct err *err)
{
	struct bash_config c = {
		.output_limit = (uint64_t)h->config.output_limit,
		.foreground_ms = h->config.foreground_ms,
		.grace_ms = h->config.grace_ms,
		.log_head = (uint64_t)h->config.log_head,
		.log_tail = (uint64_t)h->config.log_tail,
		.kept = (uint64_t)h->config.kept_bytes,
		.kept_per_owner = (uint64_t)h->config.owner_kept_bytes,
		.withheld = (const char *const *)h->config.withheld,
		.context = client_context,
		.may_start = h->journal ? journal_may_start : NULL,
		.started = h->journal ? journal_started : NULL,
		.ended = h->journal ? journal_ended : NULL,
		.promised = h->journal ? journal_promised : NULL,
		.known = h->journal ? journal_known : NULL,
		.kill_reason = h->journal ? journal_kill_reason : NULL,
		.cancelled = h->journal ? audit_kill : NULL,
		.dropped = h->journal ? audit_drop : NULL,
		.ud = h,
	};
	autofree char *shim = ident_shim(err);
	int rc;

	if (!shim)
		return -ERR_NOT_FOUND;
	rc = run_new(h->state.path, shim, &h->run, err);
	if (rc < 0)
		return rc;
	limit_tasks(h);
	h->bash = bash_new(h->core, h->run, &c);
	return 0;
}

/* The tools, behind what was restored. */
static int offer_tools(struct host *h, struct err *err)
{
	char config[128];
	errand_error *e = NULL;
	errand_reg reg;

	(void)snprintf(config, sizeof(config),
		       "{\"waitTimeoutMs\":%lld,\"maxWaitTimeoutMs\":%lld}",
		       (long long)h->config.wait_default_ms,
		       (long long)h->config.wait_max_ms);
	if (errand_mount(h->core, 0, config, ERRAND_NUL, &reg, &e) < 0)
		return refused(err, "cannot start", e);
	if (bash_offer(h->bash, &e) < 0)
		return refused(err, "cannot offer bash", e);
	return 0;
}

static int start_mcp(struct host *h, struct err *err)
{
	struct buf meta = BUF_INIT(KIB(32));
	struct mcp_server_options o = {
		.host = h->core,
		.version = ERRAND_VERSION,
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
	return rc;
}

static int watch_run(struct host *h, struct err *err)
{
	int rc = uv_poll_init(&h->loop, &h->run_poll, run_fd(h->run));

	if (rc < 0)
		return err_sys(err, -rc, "cannot watch the tasks");
	h->is_polling_run = true;
	h->run_poll.data = h;
	(void)uv_poll_start(&h->run_poll, UV_READABLE, on_run);
	return 0;
}

/* A live task costs a descriptor, and clients are often started with 1024. Nor is whoever starts
 * a daemon to bound what it does for others; tasks have their client's limits. */
static void raise_limits(const struct host *h)
{
	static const int resources[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS,
					RLIMIT_DATA};
	size_t n = h->journal ? sizeof(resources) / sizeof(resources[0]) : 1;
	struct rlimit r;

	for (size_t i = 0; i < n; i++) {
		if (getrlimit(resources[i], &r) < 0 || r.rlim_cur == r.rlim_max)
			continue;
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(resources[i], &r);
	}
}

int host_start(struct host *h, struct err *err)
{
	int rc;

	raise_limits(h);
	rc = start_core(h, err);
	if (rc == 0)
		rc = start_bash(h, err);
	if (rc == 0 && h->journal)
		rc = journal_restore(h->journal, err);
	if (rc == 0)
		rc = offer_tools(h, err);
	if (rc == 0)
		rc = judge_new(h, &h->judge, err);
	if (rc == 0)
		rc = start_mcp(h, err);
	if (rc == 0 && h->journal) {
		journal_enter_owners(h->journal);
		journal_sweep(h->journal);
		h->give_up_ms = clock_mono_ms() + COME_BACK_MS;
	}
	return rc < 0 ? rc : watch_run(h, err);
}

int host_operator(struct host *h, errand_agent *ret, struct err *err)
{
	struct errand_agent_options o = {
		.size = sizeof(o),
		.flags = ERRAND_AGENT_OPERATOR | ERRAND_AGENT_UNREGISTERED,
		.session = {HOST_OPERATOR, ERRAND_NUL},
	};
	errand_error *e = NULL;

	if (!h->operator&& errand_agent_new(h->core, &o, &h->operator, & e) < 0) {
		(void)err_set(err, ERR_STATE, "no operator: %.200s",
			      errand_error_message(e, NULL));
		errand_error_free(e);
		return -ERR_STATE;
	}
	*ret = h->operator;
	return 0;
}

/* Whoever started us may have blocked what is to end us. */
static void take_signals(struct host *h)
{
	sigset_t ours;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* the client's limit is the write's error */
	sigemptyset(&ours);
	for (size_t i = 0; i < HOST_SIGNALS; i++)
		sigaddset(&ours, signals[i]);
	(void)sigprocmask(SIG_UNBLOCK, &ours, NULL);
	for (size_t i = 0; i < HOST_SIGNALS; i++) {
		(void)uv_signal_init(&h->loop, &h->signals[i]);
		h->signals[i].data = h;
		/* From here on also one that comes too early leaves nothing behind. */
		(void)uv_signal_start(&h->signals[i], on_signal, signals[i]);
	}
}

int host_init(struct host *h, const struct host_type *type, struct err *err)
{
	int rc = uv_loop_init(&h->loop);

	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
	if (rc < 0)
		return err_sys(err, -rc, "no event loop");
	h->type = type;
	h->armed_ms = h->give_up_ms = INT64_MAX;
	h->began_ms = clock_wall_ms();
	h->state = (struct state)STATE_NONE;
	list_init(&h->clients);
	map_init(&h->callers, NULL);
	owners_init(&h->owners);
	h->owners.connected = clients_named;
	h->owners.ud = h;
	(void)uv_timer_init(&h->loop, &h->timer);
	h->timer.data = h;
	take_signals(h);
	return 0;
}

/* ---- the end ---- */

static void close_loop(struct host *h)
{
	if (h->is_polling_run)
		uv_close((uv_handle_t *)&h->run_poll, NULL);
	uv_close((uv_handle_t *)&h->timer, NULL);
	for (size_t i = 0; i < HOST_SIGNALS; i++)
		uv_close((uv_handle_t *)&h->signals[i], NULL);
	(void)uv_run(&h->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&h->loop);
}

void host_finish(struct host *h)
{
	atomic_store(&h->is_leaving, true);
	/* The tasks first: it may be all that there is time for. */
	if (h->run && h->journal)
		run_let_go(h->run);
	else if (h->run)
		run_leave(h->run);
	clients_free(h);
	judge_leave(h->judge);
	close_loop(h);
	journal_free(h->journal);
	errand_host_free(h->core);
	judge_free(h->judge);
	mcp_server_free(h->server);
	bash_free(h->bash);
	run_free(h->run);
	owners_release(&h->owners);
	map_release(&h->callers);
	config_release(&h->config);
}
