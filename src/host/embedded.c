/* SPDX-License-Identifier: MIT */
/*
 * embedded.c - the host inside `errand mcp`: one client, on stdin and stdout.
 *
 * It ends on EOF, on SIGINT, SIGTERM and SIGHUP and when the client's end of stdout is gone,
 * and has about 10 ms for it with some clients: every live task's shim is sent a kill, what
 * is empty is removed, and that is all.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/err.h"
#include "host/host.h"
#include "host/ident.h"
#include "host/internal.h"
#include "host/sweep.h"
#include "mcp/mcp.h"
#include "transport/stdinout.h"

struct embedded {
	struct host host;
	pthread_t sweeper;
	bool is_sweeping;
};

static void on_client_gone(struct host *h)
{
	host_leave(h);
}

static int64_t no_deadline(struct host *h)
{
	(void)h;
	return INT64_MAX;
}

static void no_tick(struct host *h, int64_t mono_ms)
{
	(void)h;
	(void)mono_ms;
}

static const struct host_type embedded_type = {
	.client_gone = on_client_gone,
	.deadline = no_deadline,
	.tick = no_tick,
};

/* ---- folders of others ---- */

static void *do_sweep(void *ud)
{
	struct host *h = ud;

	sweep(h->state.parent, &h->is_leaving);
	return NULL;
}

/* Where no thread can be had, a later host sweeps; the loop's own workers would abort. */
static void start_sweep(struct embedded *e)
{
	sigset_t all, before;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	e->is_sweeping = pthread_create(&e->sweeper, NULL, do_sweep, &e->host) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- start and end ---- */

static int start(struct embedded *e, const struct host_options *o, struct err *err)
{
	struct host *h = &e->host;
	struct client *c = client_new(h);
	int rc = config_read(&h->config, environ, err);

	/* Before the host raises limits of its own. */
	context_take_own(&c->hello.context);
	c->owner = ident_owner(o->session);
	if (rc == 0)
		rc = state_open_embedded(&h->state, o->state, err);
	if (rc == 0)
		rc = host_start(h, err);
	if (rc < 0)
		return rc;
	door_stdio_enter(c);
	if (o->is_legacy_only)
		mcp_be_legacy(c->mcp);
	if (state_has_others(&h->state))
		start_sweep(e);
	return stdinout_new(&h->loop, &client_events, c, &c->transport, err);
}

int host_serve_embedded(const struct host_options *o)
{
	struct embedded e = {0};
	struct err err = {0};
	int rc;

	rc = host_init(&e.host, &embedded_type, &err);
	if (rc < 0) {
		fprintf(stderr, "errand: %s\n", err.msg);
		return 1;
	}
	rc = start(&e, o, &err);
	if (rc == 0)
		(void)uv_run(&e.host.loop, UV_RUN_DEFAULT);
	else
		fprintf(stderr, "errand: %s\n", err.msg);
	if (e.host.state.path)
		state_disown(&e.host.state);
	host_finish(&e.host);
	if (e.is_sweeping)
		(void)pthread_join(e.sweeper, NULL);
	state_close(&e.host.state);
	if (rc == 0)
		return 0;
	return rc == -ERR_ARG ? 2 : 1;
}
