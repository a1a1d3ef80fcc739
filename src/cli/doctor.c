/* SPDX-License-Identifier: MIT */
/* doctor.c - `errand doctor`: what is there, what is missing, what to do. */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/command.h"
#include "host/doctor.h"
#include "run/screen.h"

static const struct option_spec options[] = {
	STATE_OPTION,
	END_OF_OPTIONS,
};

static void print(void *ud, enum doctor_verdict verdict, const char *what, const char *text)
{
	static const char *const words[] = {
		[DOCTOR_FINE] = "ok",
		[DOCTOR_POORER] = "note",
		[DOCTOR_BROKEN] = "WRONG",
	};
	autobuf struct buf line = BUF_INIT(KIB(16));
	int *code = ud;

	screen_put(&line, text, strlen(text), SIZE_MAX);
	printf("%-6s%-14s%s\n", words[verdict], what, buf_text(&line));
	if (verdict == DOCTOR_BROKEN)
		*code = EXIT_FAILED;
}

static int run(const char *const *values, char *const *args)
{
	int code = EXIT_DONE;

	(void)args;
	doctor(values[0], print, &code);
	return code;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "look whether all is well",
	.details = "Looks at the state folder, the host, the kernel and the disk, and says "
		   "what to\ndo. Ends with 1 if something is wrong; a note is no fault.",
	.options = options,
	.run = run,
};
