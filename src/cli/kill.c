/* SPDX-License-Identifier: MIT */
/* kill.c - `errand kill`: ask for the end of tasks, or of what they have left running. */
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"

enum {
	STATE,
	REASON,
	LEFTOVERS,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[REASON] = {"--reason", "R", "why, for the task's owner"},
	[LEFTOVERS] = {"--leftovers", NULL,
		       "what ended tasks have left, detached ones too"},
	END_OF_OPTIONS,
};

static int kill_one(struct asking *a, const char *id, const char *reason)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);
	struct js *answer = NULL;
	int rc;

	people_put_id(&params, id);
	if (reason)
		js_put_member(&params, "reason", reason, strlen(reason));
	buf_addc(&params, '}');
	rc = people_ask(a, "errand/kill", &params, &answer);
	if (rc == EXIT_DONE)
		printf("%s: %s\n", id,
		       js_is_true(js_get(answer, "requested")) ? "kill requested"
							       : "had ended already");
	js_free(answer);
	return rc;
}

static int sweep_one(struct asking *a, const char *id)
{
	struct js *answer = NULL;
	int rc = people_ask_id(a, "errand/sweep", id, &answer);
	double found = js_number(js_get(answer, "found"));

	if (rc == EXIT_DONE)
		printf("%s: %.0f process%s found, %.0f left\n", id, found,
		       found == 1 ? "" : "es", js_number(js_get(answer, "left")));
	js_free(answer);
	return rc;
}

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "kill"};
	int rc = people_connect(&a, values[STATE], NULL), first = rc;

	for (; a.link && *args; args++) {
		rc = values[LEFTOVERS] ? sweep_one(&a, *args)
				       : kill_one(&a, *args, values[REASON]);
		first = first == EXIT_DONE ? rc : first;
	}
	people_leave(&a);
	return first;
}

const struct command command_kill = {
	.name = "kill",
	.summary = "end tasks",
	.details = "Asks for the end of each task with all its processes: SIGTERM, a grace "
		   "time,\nSIGKILL. Does not wait; `errand wait` does.",
	.options = options,
	.args = "ID...",
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run,
};
