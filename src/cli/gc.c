/* SPDX-License-Identifier: MIT */
/* gc.c - `errand gc`: remove what is done with. */
#include "cli/command.h"

#include "base/err.h"
#include "cli/people.h"
#include "host/gc.h"

static const struct option_spec options[] = {
	STATE_OPTION,
	END_OF_OPTIONS,
};

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "gc"};
	struct err err = {0};
	struct gc g;

	(void)args;
	if (gc_run(values[0], &g, &err) < 0)
		return people_failed(&a, &err);
	printf("%zu folders of hosts that have left are removed\n", g.removed);
	if (g.busy)
		printf("%zu are still needed by tasks that are being ended\n", g.busy);
	if (g.crashed)
		printf("%zu folders of hosts that have crashed are kept\n", g.crashed);
	return EXIT_DONE;
}

const struct command command_gc = {
	.name = "gc",
	.summary = "remove what hosts have left behind",
	.details =
		"Removes the folders of hosts inside `errand mcp` that have left in good "
		"order.\nNothing of a live host, and nothing that a crashed one has left, "
		"is touched.",
	.options = options,
	.run = run,
};
