/* SPDX-License-Identifier: MIT */
#include "host/context.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

void context_take_own(struct context *ret)
{
	*ret = (struct context){.cwd = getcwd(NULL, 0)};
	ret->run.cwd = ret->cwd;
	ret->run.env = (const char *const *)environ;
	ret->run.umask = umask(077);
	(void)umask(ret->run.umask);
	for (int i = 0; i < RLIM_NLIMITS && getrlimit(i, &ret->limits[i]) == 0; i++)
		ret->run.n_limits++;
	ret->run.limits = ret->limits;
}

static void put_string(struct buf *out, const char *s)
{
	buf_add(out, s, strlen(s) + 1);
}

void context_put(struct buf *out, const struct context *c)
{
	put_string(out, c->cwd ? c->cwd : "");
	for (const char *const *v = c->run.env; *v; v++)
		put_string(out, *v);
}

static size_t count_strings(const char *bytes, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += bytes[i] == 0;
	return n;
}

int context_read(struct context *ret, const char *bytes, size_t len, struct err *err)
{
	const char *p;
	size_t n;

	if (len == 0 || bytes[len - 1] != 0)
		return err_set(err, ERR_FORMAT, "the context does not end with a NUL");
	if (*bytes && *bytes != '/')
		return err_set(err, ERR_FORMAT, "the context's folder is not absolute");
	n = count_strings(bytes, len);
	ret->bytes = mem_dup(NULL, bytes, len);
	ret->env = mem_new(NULL, n * sizeof(*ret->env));
	p = ret->bytes + strlen(ret->bytes) + 1;
	for (size_t i = 0; i + 1 < n; i++, p += strlen(p) + 1)
		ret->env[i] = p;
	ret->cwd = *bytes ? mem_dup(NULL, bytes, strlen(bytes)) : NULL;
	ret->run.cwd = ret->cwd;
	ret->run.env = ret->env;
	ret->run.limits = ret->limits;
	return 0;
}

void context_set_limit(struct context *c, size_t which, struct rlimit limit)
{
	struct rlimit own;

	if (getrlimit((int)which, &own) == 0) {
		if (limit.rlim_max > own.rlim_max)
			limit.rlim_max = own.rlim_max;
		if (limit.rlim_cur > own.rlim_max)
			limit.rlim_cur = own.rlim_max;
	}
	c->limits[which] = limit;
	if (c->run.n_limits <= which)
		c->run.n_limits = which + 1;
}

void context_release(struct context *c)
{
	mem_free(NULL, c->cwd);
	mem_free(NULL, c->bytes);
	mem_free(NULL, c->env);
	*c = (struct context){0};
}
