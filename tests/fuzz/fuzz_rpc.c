/* SPDX-License-Identifier: MIT */
/*
 * fuzz_rpc.c - a whole MCP conversation over the real core.
 *
 * The input is lines, as a client would send them. A line that starts with '!' is not sent
 * but moves the world: !d the pipe takes what was sent, !l it never will, !t five seconds
 * pass, !j a task starts, !e the oldest one ends, !o it prints something.
 */
#include "base/json.h"
#include "conversation.h"

#define MAX_JOBS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct talk t;
static errand_task jobs[MAX_JOBS];
static size_t started, ended;

static void move(char what)
{
	switch (what) {
	case 'd':
		deliver(&t);
		break;
	case 'l':
		lose(&t);
		break;
	case 't':
		t.now += 5000;
		mcp_tick(t.mcp, t.now);
		talk_work(&t);
		break;
	case 'j':
		if (started < MAX_JOBS && started - ended < 10)
			jobs[started++] = job(&t, NULL);
		break;
	case 'e':
		if (ended < started)
			job_ends(&t, jobs[ended++]);
		break;
	case 'o':
		(void)snprintf(t.output, sizeof(t.output), "%zu\"\n\x01", started);
		break;
	default:
		mcp_line_too_long(t.mcp, 1);
		break;
	}
}

/* What leaves must be JSON, whatever came in. */
static void check_lines(void)
{
	for (; t.count > 0; t.count--) {
		char *line = t.lines[t.count - 1];
		struct js *j = NULL;

		if (t.tokens[t.count - 1])
			return;
		if (strcmp(line, "(taken back)") != 0 &&
		    js_parse(line, strlen(line), &j, NULL) == -ERR_FORMAT)
			abort();
		js_free(j);
		free(line);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *end = p + size, *stop;

	talk_open(&t, size > 0 && data[0] == 'L');
	started = ended = 0;
	for (; p < end && t.count < TALK_LINES / 2; p = stop + 1) {
		/* A line of its own, so that a read past its end is seen. */
		char *line;

		stop = memchr(p, '\n', (size_t)(end - p));
		stop = stop ? stop : end;
		line = mem_dup(NULL, p, (size_t)(stop - p));
		if (*line == '!')
			move(line[1]);
		else
			say_bytes(&t, line, (size_t)(stop - p));
		mem_free(NULL, line);
	}
	deliver(&t);
	check_lines();
	talk_close(&t);
	return 0;
}
