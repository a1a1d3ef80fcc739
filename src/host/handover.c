/* SPDX-License-Identifier: MIT */
#include "host/handover.h"

#include "base/err.h"
#include "host/internal.h"
#include "host/journal.h"
#include "host/link.h"
#include "host/version.h"

bool handover_ask(const char *state)
{
	struct link_options o = {.state = state, .role = HELLO_HANDOVER};
	struct link *l = NULL;
	struct err err = {0};
	bool is_granted = link_open(&o, &l, &err) == LINK_OPEN;

	link_free(l);
	return is_granted;
}

int handover_grant(struct client *c, struct err *err)
{
	const char *trouble = journal_trouble(c->host->journal);
	char line[128];

	if (version_compare(c->hello.version, ERRAND_VERSION) <= 0)
		return err_set(
			err, ERR_STATE,
			"errand %s makes way for a newer one only, not for errand %s",
			ERRAND_VERSION, c->hello.version);
	if (trouble)
		return err_set(err, ERR_STATE,
			       "what happens cannot be kept (%.200s), and would be lost",
			       trouble);
	(void)snprintf(line, sizeof(line), "this is errand %s, and makes way for errand %s",
		       ERRAND_VERSION, c->hello.version);
	host_say(line);
	c->host->makes_way = true;
	return 0;
}
