/* SPDX-License-Identifier: MIT */
/* extend.c - `errand extend`: a live task's new deadline. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"

static const struct option_spec options[] = {
	STATE_OPTION,
	END_OF_OPTIONS,
};

static int run(const char *const *values, char *const *args)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);
	struct asking a = {.command = "extend"};
	struct js *answer = NULL;
	struct err err = {0};
	int64_t ms = 0;
	int rc;

	if (strcmp(args[1], "none") != 0 && human_read_ms(args[1], &ms, &err) < 0)
		return people_wrong(&a, &err);
	people_put_id(&params, args[0]);
	buf_addf(&params, ",\"ms\":%" PRId64 "}", ms);
	rc = people_connect(&a, values[0], NULL);
	if (rc == EXIT_DONE)
		rc = people_ask(&a, "errand/extend", &params, &answer);
	if (rc == EXIT_DONE && ms)
		printf("%s: ends in %s\n", args[0], args[1]);
	else if (rc == EXIT_DONE)
		printf("%s: has no deadline\n", args[0]);
	js_free(answer);
	people_leave(&a);
	return rc;
}

const struct command command_extend = {
	.name = "extend",
	.summary = "give a task a new deadline",
	.details = "The task will be ended so long from now, whatever its deadline was; "
		   "`none` takes\nthe deadline away.",
	.options = options,
	.args = "ID 90s|15m|1h30m|none",
	.min_args = 2,
	.max_args = 2,
	.run = run,
};
