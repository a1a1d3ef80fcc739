/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/limits.h"
#include "run/screen.h"

#define TICK_MS 1000
#define USUAL_COLUMNS 80

/* One less: the last cell of a line may wrap it. */
static size_t columns(void)
{
	struct winsize size = {0};

	(void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	return (size.ws_col ? size.ws_col : USUAL_COLUMNS) - 1U;
}

void progress_begin(struct progress *p, const char *what)
{
	*p = (struct progress){.what = what, .since_ms = clock_mono_ms()};
}

int progress_show(struct progress *p)
{
	autobuf struct buf text = BUF_INIT(KIB(1)), line = BUF_INIT(KIB(4));
	int64_t ms = clock_mono_ms() - p->since_ms;

	if (!isatty(STDERR_FILENO))
		return -1;
	buf_addf(&text, "waiting for %s, ", p->what);
	human_put_ms(&text, ms - ms % TICK_MS);
	screen_put(&line, buf_text(&text), text.len, columns());
	p->is_shown = ms >= TICK_MS; /* who is answered at once sees nothing flash */
	if (p->is_shown)
		fprintf(stderr, "\r%s\033[K", buf_text(&line));
	return (int)(TICK_MS - ms % TICK_MS);
}

void progress_erase(const struct progress *p)
{
	if (p->is_shown)
		fprintf(stderr, "\r\033[K");
}
