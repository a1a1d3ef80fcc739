/* SPDX-License-Identifier: MIT */
/* plan.c - from what a caller wants to the bytes of a spec. Nothing is made on disk. */
#include <errno.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "run/internal.h"

/* The kernel's own limit for one argument, with its NUL. */
#define MAX_ARGUMENT ((size_t)32 * 4096 - 1)

#define TASK_VARIABLE "ERRAND_TASK="

static int make_uid(char uid[PROTO_UID_LEN + 1], struct err *err)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t raw[PROTO_UID_LEN / 2];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return err_sys(err, errno, "cannot make a random name");
	for (size_t i = 0; i < sizeof(raw); i++) {
		uid[2 * i] = digits[raw[i] >> 4];
		uid[2 * i + 1] = digits[raw[i] & 15];
	}
	uid[PROTO_UID_LEN] = 0;
	return 0;
}

/* The directory to run in, absolute. */
static int find_workdir(const struct run_spec *spec, struct buf *ret, struct err *err)
{
	const char *shown = spec->workdir ? spec->workdir : spec->context->cwd;
	struct stat st;

	if ((!shown || shown[0] != '/') && !spec->context->cwd)
		return err_set(err, ERR_ARG,
			       "cannot use workdir '%s': the client's own folder is gone; "
			       "give an absolute workdir",
			       shown ? shown : ".");
	if (shown[0] != '/') {
		buf_adds(ret, spec->context->cwd);
		buf_addc(ret, '/');
	}
	if (buf_adds(ret, shown) != 0)
		return err_set(err, ERR_ARG, "cannot use workdir: the path is too long");
	if (stat(buf_text(ret), &st) != 0)
		errno = errno ? errno : EIO;
	else if (S_ISDIR(st.st_mode))
		return 0;
	else
		errno = ENOTDIR;
	(void)err_sys(err, errno, "cannot use workdir '%s'", shown);
	if (err)
		err->code = ERR_ARG;
	return -ERR_ARG;
}

static int check_arguments(const char *const *argv, size_t *ret_count, struct err *err)
{
	size_t n = 0;

	for (; argv[n]; n++) {
		size_t len = strlen(argv[n]);

		if (len > MAX_ARGUMENT)
			return err_set(
				err, ERR_ARG,
				"an argument of %zu bytes is too long: at most %zu; put "
				"it into a file",
				len, MAX_ARGUMENT);
	}
	*ret_count = n;
	return n ? 0 : err_set(err, ERR_ARG, "there is nothing to run");
}

/* The context's variables, and our own in place of one from an outer task. */
static char **make_env(const struct run_context *c, char *own, size_t *ret_count)
{
	size_t n = 0, kept = 0;
	char **env;

	while (c->env[n])
		n++;
	env = mem_new(NULL, (n + 2) * sizeof(*env));
	for (size_t i = 0; i < n; i++) {
		if (strncmp(c->env[i], TASK_VARIABLE, strlen(TASK_VARIABLE)) != 0)
			memcpy(&env[kept++], &c->env[i], sizeof(*env));
	}
	env[kept++] = own;
	*ret_count = kept;
	return env;
}

static void put_limits(struct proto_spec *out, const struct run_context *c)
{
	while (out->n_limits < c->n_limits && out->n_limits < PROTO_LIMITS_MAX) {
		const struct rlimit *r = &c->limits[out->n_limits];

		out->limits[out->n_limits] = (struct proto_limit){
			.resource = (uint32_t)out->n_limits,
			.soft = r->rlim_cur,
			.hard = r->rlim_max,
		};
		out->n_limits++;
	}
}

static int write_spec(struct run_task *t, struct proto_spec *out, struct err *err)
{
	int rc;

	buf_init(&t->spec, MAX_SPEC);
	rc = proto_put_spec(&t->spec, out);
	if (rc == 0)
		return 0;
	buf_release(&t->spec);
	return err_set(err, ERR_ARG,
		       "command and environment are too large: at most %zu bytes",
		       MAX_SPEC);
}

int run_plan(struct run_task *t, const struct run_spec *spec, struct err *err)
{
	char own[sizeof(TASK_VARIABLE) + PROTO_UID_LEN];
	autobuf struct buf cwd = BUF_INIT(KIB(64));
	autofree char **env = NULL;
	struct proto_spec out = {
		.flags = spec->has_input ? PROTO_SPEC_STDIN : 0,
		.umask = (uint32_t)spec->context->umask,
		.oom_score_adj = t->run->oom_score_adj,
		.deadline_ms = spec->deadline_ms,
		.grace_ms = spec->grace_ms,
		.log_head = spec->log_head,
		.log_tail = spec->log_tail,
	};
	int rc = check_arguments(spec->argv, &out.argc, err);

	if (rc == 0)
		rc = find_workdir(spec, &cwd, err);
	if (rc == 0)
		rc = make_uid(t->uid, err);
	if (rc != 0)
		return rc;
	memcpy(out.uid, t->uid, sizeof(out.uid));
	memcpy(out.boot_id, t->run->boot_id, sizeof(out.boot_id));
	(void)snprintf(own, sizeof(own), TASK_VARIABLE "%s", t->uid);
	env = make_env(spec->context, own, &out.envc);
	put_limits(&out, spec->context);
	out.cwd = buf_text(&cwd);
	out.env = env;
	memcpy(&out.argv, &spec->argv, sizeof(out.argv));
	t->log_head = spec->log_head;
	t->deadline_ms = spec->deadline_ms;
	return write_spec(t, &out, err);
}
