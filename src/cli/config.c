/* SPDX-License-Identifier: MIT */
/* config.c - `errand config`: what is set, and where. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "cli/command.h"
#include "host/config.h"
#include "run/screen.h"

static const struct option_spec options[] = {END_OF_OPTIONS};

/* A folder may have any name. */
static void print(const char *text)
{
	for (size_t len; *text; text += len + 1) {
		autobuf struct buf line = BUF_INIT(KIB(64));

		len = strcspn(text, "\n");
		screen_put(&line, text, len, SIZE_MAX);
		printf("%s\n", buf_text(&line));
	}
}

static int run(const char *const *values, char *const *args)
{
	autobuf struct buf text = BUF_INIT(KIB(64));
	struct err err = {0};

	(void)values;
	(void)args;
	if (config_describe(environ, &text, &err) < 0) {
		fprintf(stderr, "errand: %s\n", err.msg);
		return EXIT_USAGE;
	}
	print(buf_text(&text));
	return EXIT_DONE;
}

const struct command command_config = {
	.name = "config",
	.summary = "show the settings",
	.details =
		"Shows each setting in the form of an errand.conf, and where it is from. "
		"Ends\nwith 2 if one of them is wrong.",
	.options = options,
	.run = run,
};
