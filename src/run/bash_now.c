/* SPDX-License-Identifier: MIT */
/* bash_now.c - what a person sees of a live task beside its facts: what it uses, what it said. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "run/bash_internal.h"
#include "run/reader.h"

/* Of the last line; a screen shows less. */
#define LINE_MAX_BYTES KIB(1)

static void put_number(struct buf *out, const char *key, uint64_t n)
{
	js_put_key(out, key);
	js_put_int(out, (int64_t)n);
}

/* The last one with something in it. */
static struct js_span last_line(const struct buf *text)
{
	const char *begin = buf_text(text), *end = begin + text->len, *at;

	while (end > begin && (end[-1] == '\n' || end[-1] == ' '))
		end--;
	for (at = end; at > begin && at[-1] != '\n'; at--)
		;
	if ((size_t)(end - at) > LINE_MAX_BYTES)
		end = at + LINE_MAX_BYTES;
	return (struct js_span){at, (size_t)(end - at)};
}

static void put_last_line(struct buf *out, const struct bash_task *t)
{
	autobuf struct buf text = BUF_INIT(READER_PART_MAX + KIB(64));
	struct reader_part part;
	struct js_span line;
	struct reader r;
	int rc = run_reader(t->run, &r, READER_TEXT, NULL);

	if (rc < 0)
		return;
	rc = reader_tail(&r, 1, NULL);
	if (rc == 0)
		rc = reader_read(&r, &text, &part, NULL);
	if (rc >= 0)
		(void)reader_rest(&r, &text, NULL);
	reader_close(&r);
	line = last_line(&text);
	if (line.len)
		js_put_member(out, "lastLine", line.ptr, line.len);
}

void bash_now(const struct bash *b, const char *id, size_t len, struct buf *out)
{
	const struct bash_task *t = bash_find(b, id, len);
	struct run_usage usage;
	int64_t since;

	if (!t || t->is_ended)
		return;
	buf_addc(out, '{');
	if (run_usage(t->run, &usage)) {
		put_number(out, "cpuMs", usage.cpu_ms);
		put_number(out, "memoryKiB", usage.memory_kib);
		put_number(out, "processes", usage.processes);
	}
	since = run_quiet_since(t->run);
	if (since > 0)
		put_number(
			out, "quietMs",
			(uint64_t)(clock_wall_ms() > since ? clock_wall_ms() - since : 0));
	put_last_line(out, t);
	buf_addc(out, '}');
}
