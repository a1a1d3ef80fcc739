/* SPDX-License-Identifier: MIT */
/* gc.c - `errand gc`: remove what is done with. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/human.h"
#include "cli/command.h"
#include "cli/people.h"
#include "host/gc.h"

static const struct option_spec options[] = {
	STATE_OPTION,
	END_OF_OPTIONS,
};

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "gc"};
	autobuf struct buf bytes = BUF_INIT(64);
	struct err err = {0};
	struct gc g;
	int rc = people_folder(&a, values[0]);

	(void)args;
	if (rc != EXIT_DONE)
		return rc;
	if (gc_run(values[0], &g, &err) < 0)
		return people_failed(&a, &err);
	printf("%zu folders of hosts that have left are removed\n", g.removed);
	if (g.busy)
		printf("%zu are still needed by tasks that are being ended\n", g.busy);
	if (g.crashed)
		printf("%zu folders of hosts that have crashed are kept, for the next daemon\n",
		       g.crashed);
	if (!g.has_store)
		return EXIT_DONE;
	printf("%" PRId64 " tasks of the past, %" PRId64
	       " entries of the history and %" PRId64 " old requests are forgotten\n",
	       g.tasks, g.entries, g.requests);
	human_put_bytes(&bytes, g.bytes > 0 ? (uint64_t)g.bytes : 0);
	printf("the store has given %sB back\n", buf_text(&bytes));
	return EXIT_DONE;
}

const struct command command_gc = {
	.name = "gc",
	.summary = "remove what nobody needs any more",
	.details =
		"Removes the folders of hosts inside `errand mcp` that have left in good "
		"order,\nforgets what the store holds beyond its limits (errand.conf), and "
		"gives its free\nspace back. Nothing of a live host or task, and nothing that "
		"a crashed host has\nleft, is touched.",
	.options = options,
	.run = run,
};
