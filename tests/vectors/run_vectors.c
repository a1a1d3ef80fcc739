/* SPDX-License-Identifier: MIT */
/*
 * run_vectors.c - plays recorded rows against the library.
 *
 * run-vectors FILE...: the name of a file says what its rows are. Prints one line a file and
 * one in all; exits 1 if a row failed, or if a file or row is of no kind known here. A row that
 * kills its process, or hangs, is a failed one like others.
 *
 * A row that the file `differs` lists (file, n, item of the list of known differences,
 * reason) may fail: it is printed with its reason and counted apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vectors.h"

#define ROW_SECONDS 60 /* a row that takes longer hangs */

static const struct file_kind {
	const char *prefix;
	row_fn play;
} kinds[] = {
	{"args", row_args},
	{"policy", row_policy},
	{"kill_render", row_kill_render},
	{"list_render", row_list_render},
	{"notice", row_notice},
	{"output_render", row_output_render},
	{"retention", row_retention},
	{"summary", row_summary},
	{"surface", row_surface},
	{"scenarios", row_scenario},
	{"later_scenarios", row_later_scenario},
};

struct counts {
	unsigned passed, failed, differ;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static row_fn kind_of(const char *path)
{
	const char *name = base_name(path);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
			return kinds[i].play;
	return NULL;
}

/* ---- known differences ---- */

/* The rest of the line "<name> <n> ..." in the list, or NULL. Yours to free. */
static char *find_difference(const char *name, json_int_t n)
{
	char *line = NULL, *found = NULL;
	char want[256];
	size_t cap = 0, len;
	FILE *file = fopen(VECTORS_DIFFERS, "r");

	if (!file)
		return NULL;
	len = (size_t)snprintf(want, sizeof(want), "%s %lld ", name, (long long)n);
	while (!found && getline(&line, &cap, file) > 0)
		if (strncmp(line, want, len) == 0)
			found = strndup(line + len, strcspn(line + len, "\n"));
	free(line);
	fclose(file);
	return found;
}

/* ---- rows ---- */

static void report(struct counts *c, const char *name, const json_t *in, char *trouble)
{
	json_int_t n = json_integer_value(json_object_get(in, "n"));
	char *reason;

	if (!trouble) {
		c->passed++;
		return;
	}
	reason = find_difference(name, n);
	if (reason) {
		c->differ++;
		printf("%s #%lld differs: %s\n", name, (long long)n, reason);
	} else {
		c->failed++;
		printf("%s #%lld\n%s", name, (long long)n, trouble);
	}
	free(reason);
}

/* The value of the escape at @p, or 0: \\uXXXX of a surrogate. */
static unsigned long surrogate_at(const char *p)
{
	char digits[5] = "";
	unsigned long v;

	if (p[0] != '\\' || p[1] != 'u' || strnlen(p, 6) < 6)
		return 0;
	memcpy(digits, p + 2, 4);
	v = strtoul(digits, NULL, 16);
	return v >= 0xd800 && v <= 0xdfff ? v : 0;
}

/* Half a pair is no JSON; we never write one (it is dropped), so none is expected. */
static void drop_half_pairs(char *line)
{
	char *out = line;

	for (char *p = line; *p;) {
		unsigned long v = surrogate_at(p);
		size_t n = p[0] == '\\' && p[1] ? 2 : 1;

		if (v && v < 0xdc00 && surrogate_at(p + 6) >= 0xdc00)
			n = 12;
		if (v && n != 12) {
			p += 6;
			continue;
		}
		memmove(out, p, n);
		out += n;
		p += n;
	}
	*out = 0;
}

/* An integer beyond 64 bits is read as the double that it is there. */
static json_t *load_long_integers(const char *line)
{
	char *text = malloc(strlen(line) * 2 + 1), *out = text;
	bool in_string = false;
	json_t *in;

	for (const char *p = line; *p;) {
		size_t n = strspn(p, "0123456789");

		if (n == 0 || in_string) {
			n = *p == '\\' && p[1] ? 2 : 1;
			in_string ^= *p == '"';
		}
		memcpy(out, p, n);
		out += n;
		p += n;
		if (in_string || n < 19 || strchr(".eE", *p))
			continue;
		memcpy(out, "e0", 2);
		out += 2;
	}
	*out = 0;
	in = json_loads(text, JSON_ALLOW_NUL, NULL);
	free(text);
	return in;
}

static void play_line(struct counts *c, const char *name, row_fn play, char *line,
		      size_t len)
{
	json_t *in = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	struct row r = {0};

	if (!in) {
		drop_half_pairs(line);
		in = load_long_integers(line);
	}
	r.in = in;
	if (!in || !json_is_object(in)) {
		printf("%s: not a row: %.60s\n", name, line);
		c->failed++;
		json_decref(in);
		return;
	}
	play(&r);
	report(c, name, in, r.trouble);
	free(r.trouble);
	json_decref(in);
}

/* What the process that plays a file tells the one that waits for it. */
struct progress {
	struct counts c;
	size_t line; /* the one it is at */
	bool done;
};

static void play_lines(struct progress *p, const char *name, row_fn play, FILE *file)
{
	size_t first = p->line, cap = 0;
	char *line = NULL;
	ssize_t len;

	for (size_t i = 0; (len = getline(&line, &cap, file)) > 0; i++) {
		if (i < first || line[strspn(line, " \t\r\n")] == 0)
			continue;
		p->line = i;
		alarm(ROW_SECONDS);
		play_line(&p->c, name, play, line, (size_t)len);
	}
	free(line);
}

/* In a process of its own, so that a row that kills it, or hangs, costs no other row. */
static int play_apart(struct progress *p, const char *name, row_fn play, const char *path)
{
	pid_t pid = fork();
	FILE *file;
	int status = -1;

	if (pid < 0 || (pid > 0 && waitpid(pid, &status, 0) != pid)) {
		perror("run-vectors");
		exit(2);
	}
	if (pid == 0) {
		file = fopen(path, "r");
		if (file) {
			play_lines(p, name, play, file);
			fclose(file);
		}
		p->done = true;
		exit(file ? 0 : 1);
	}
	return status;
}

static void report_end(const struct progress *p, const char *name, int status)
{
	char at[32] = "after the last row";

	if (!p->done)
		(void)snprintf(at, sizeof(at), "in line %zu", p->line + 1);
	if (WIFSIGNALED(status))
		printf("%s: killed %s: %s\n", name, at, strsignal(WTERMSIG(status)));
	else
		printf("%s: ended %s: %d\n", name, at, WEXITSTATUS(status));
}

static struct counts play_file(struct progress *p, const char *path)
{
	row_fn play = kind_of(path);

	*p = (struct progress){0};
	if (!play || access(path, R_OK) != 0) {
		printf("%s: %s\n", path, play ? "cannot open" : "rows of no known kind");
		return (struct counts){.failed = 1};
	}
	while (!p->done) {
		int status = play_apart(p, base_name(path), play, path);

		if (status == 0)
			continue;
		report_end(p, base_name(path), status);
		p->c.failed++;
		p->line++;
	}
	return p->c;
}

int main(int argc, char **argv)
{
	struct counts all = {0};
	struct progress *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (argc < 2 || p == MAP_FAILED) {
		fprintf(stderr, "usage: run-vectors FILE...\n");
		return 2;
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		struct counts c = play_file(p, argv[i]);

		printf("%s: %u passed, %u failed", argv[i], c.passed, c.failed);
		if (c.differ)
			printf(", %u differ", c.differ);
		printf("\n");
		all.passed += c.passed;
		all.failed += c.failed;
	}
	printf("%u passed, %u failed\n", all.passed, all.failed);
	return all.failed ? 1 : 0;
}
