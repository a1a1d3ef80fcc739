/* SPDX-License-Identifier: MIT */
/* serve.c - which host a client on stdin and stdout gets. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "host/config.h"
#include "host/host.h"
#include "host/ident.h"
#include "host/launch.h"
#include "host/relay.h"
#include "transport/stdinout.h"

/* Settings are the daemon's, but a wrong one is this client's mistake. */
static int check_settings(void)
{
	struct config config = {0};
	struct err err = {0};

	if (config_read(&config, environ, &err) < 0) {
		fprintf(stderr, "errand: %s\n", err.msg);
		return 2;
	}
	config_release(&config);
	return 0;
}

static int serve_through_daemon(const struct host_options *o)
{
	char nonce[HELLO_NONCE + 1];
	struct link_options lo = {
		.state = o->state,
		.role = HELLO_MCP,
		.session = ident_session(o->session),
		.nonce = nonce,
		.is_legacy_only = o->is_legacy_only,
	};
	struct link *l = NULL;
	struct err err = {0};
	int rc = check_settings();

	if (rc != 0)
		return rc;
	link_nonce(nonce);
	if (launch_link(&lo, &l, &err) == LINK_OPEN)
		return relay_serve(l, &lo);
	fprintf(stderr,
		"errand: no daemon: %s; this client keeps its tasks itself, and they "
		"end with it\n",
		err.msg);
	return host_serve_embedded(o);
}

int host_serve_stdio(const struct host_options *o)
{
	/* What is said on stderr may be too large for a limit of the client's, and ends nobody. */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (!stdinout_is_open()) {
		fprintf(stderr, "errand: stdin, stdout and stderr have to be open\n");
		return 1;
	}
	return o->is_embedded ? host_serve_embedded(o) : serve_through_daemon(o);
}
