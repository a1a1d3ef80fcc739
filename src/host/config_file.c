/* SPDX-License-Identifier: MIT */
#include "host/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"

#define MAX_FILE KIB(64)

struct reading {
	const char *path;
	const char *at; /* what has not been parsed */
	unsigned line;  /* the last one that was handed out */
	bool is_indented, has_name;
	config_line_fn fn;
	void *ud;
	unsigned bad_line; /* of *@err; 0: none */
	struct err *err;
};

/* ---- the file ---- */

static int check(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot look at '%.150s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_ARG, "'%.150s' is no regular file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(err, ERR_ARG,
			       "'%.150s' belongs to uid %u: it must be root's or our own",
			       path, (unsigned)st.st_uid);
	if (st.st_mode & 022)
		return err_set(err, ERR_ARG,
			       "'%.150s' can be written by others (mode %04o): chmod go-w "
			       "it",
			       path, (unsigned)(st.st_mode & 07777));
	return 0;
}

static int load(int fd, const char *path, struct buf *ret, struct err *err)
{
	ssize_t n = 1;

	while (n > 0) {
		if (buf_reserve(ret, KIB(1)) < 0)
			return err_set(err, ERR_ARG, "'%.150s' is longer than %zu bytes",
				       path, MAX_FILE - KIB(1));
		n = read(fd, ret->data + ret->len, KIB(1));
		if (n < 0)
			return err_sys(err, errno, "cannot read '%.150s'", path);
		ret->len += (size_t)n;
	}
	return buf_addc(ret, 0);
}

/* No file, or, of a user, no folder that can be looked into. */
static bool is_absent(const char *path, bool is_system)
{
	struct stat st;

	return errno == ENOENT || errno == ENOTDIR ||
	       (errno == EACCES && !is_system && stat(path, &st) < 0);
}

/* ---- its lines ---- */

static int line_error(const struct reading *r, unsigned line)
{
	return err_wrap(r->err, "%.120s:%u", r->path, line);
}

/* An editor shows them as nothing, a terminal obeys them. */
static int check_bytes(struct reading *r, const struct buf *text)
{
	unsigned line = 1;

	for (size_t i = 0; i + 1 < text->len; i++) {
		unsigned char c = (unsigned char)text->data[i];

		line += c == '\n';
		if (iscntrl(c) && !strchr("\t\r\n", c + (c == 0))) {
			(void)err_set(r->err, ERR_ARG, "a control character (0x%02x)", c);
			return line_error(r, line);
		}
	}
	return 0;
}

static void fail(struct reading *r)
{
	if (r->bad_line == 0)
		r->bad_line = r->line;
	r->at = "";
}

/* As fgets() does, but half a line is an error. */
static char *next_line(char *ret, int size, void *ud)
{
	struct reading *r = ud;
	size_t len = strcspn(r->at, "\n");

	len += r->at[len] == '\n';
	if (len == 0)
		return NULL;
	r->line++;
	if (len >= (size_t)size) {
		(void)err_set(r->err, ERR_ARG,
			      "a line of %zu bytes: expected at most %d; a list of names "
			      "may go on in indented lines",
			      len, size - 1);
		fail(r);
		return NULL;
	}
	memcpy(ret, r->at, len);
	ret[len] = 0;
	r->at += len;
	r->is_indented = isblank((unsigned char)*ret);
	if (*ret == '[')
		r->has_name = false;
	return ret;
}

static int on_value(void *ud, const char *section, const char *name, const char *value)
{
	struct reading *r = ud;
	bool goes_on = r->is_indented && r->has_name;

	r->has_name = true;
	if (r->bad_line != 0)
		return 0;
	if (r->fn(r->ud, section, name, value, r->line, goes_on, r->err) == 0)
		return 1;
	fail(r);
	return 0;
}

static int parse(struct reading *r, const struct buf *text)
{
	int rc = check_bytes(r, text), line;

	if (rc < 0)
		return rc;
	r->at = text->data;
	line = ini_parse_stream(next_line, r, on_value, r);
	if (line < 0)
		return err_set(r->err, ERR_NOMEM, "cannot read '%.150s'", r->path);
	if (line > 0 && (r->bad_line == 0 || (unsigned)line < r->bad_line)) {
		(void)err_set(r->err, ERR_ARG, "expected `name = value` or `[section]`");
		return line_error(r, (unsigned)line);
	}
	return r->bad_line == 0 ? 0 : line_error(r, r->bad_line);
}

int config_file(const char *path, bool is_system, config_line_fn fn, void *ud,
		struct err *err)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	autobuf struct buf text = BUF_INIT(MAX_FILE);
	struct err why = {0};
	struct reading r = {.path = path, .fn = fn, .ud = ud, .err = &why};
	int rc;

	if (fd < 0 && is_absent(path, is_system))
		return 0;
	if (fd < 0)
		rc = err_sys(&why, errno, "cannot open '%.150s'", path);
	else
		rc = check(fd, path, &why);
	if (rc == 0)
		rc = load(fd, path, &text, &why);
	if (rc == 0)
		rc = parse(&r, &text);
	if (rc < 0 && err)
		*err = why;
	return rc;
}
