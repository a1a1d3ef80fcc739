/* SPDX-License-Identifier: MIT */
#include "shim/proto.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "shim/wire.h"

#define RECORD_MAGIC 0x53525245u /* "ERRS" */
#define SPEC_MAGIC 0x43525245u   /* "ERRC" */

#define CHECKSUM_AT (PROTO_RECORD_SIZE - 8)

#define PROTO_SIZE(type, name) +sizeof(proto_##type)
_Static_assert(8 PROTO_RECORD_FIELDS(PROTO_SIZE) + 16 +
			       PROTO_WHY_LEN PROTO_RECORD_MORE(PROTO_SIZE) <=
		       CHECKSUM_AT,
	       "a record fits into its slot");
#undef PROTO_SIZE

/* FNV-1a: against torn writes, not against an enemy, who could write what he likes. */
static uint64_t checksum(const uint8_t *p, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}

/* ---- records ---- */

void proto_put_record(uint8_t out[PROTO_RECORD_SIZE], const struct proto_record *r)
{
	uint8_t *at = out;

	memset(out, 0, PROTO_RECORD_SIZE);
	at = wire_put(at, RECORD_MAGIC, 4);
	at = wire_put(at, PROTO_VERSION, 2);
	at = wire_put(at, PROTO_RECORD_SIZE, 2);
#define PROTO_PUT(type, name) at = wire_put(at, (uint64_t)r->name, sizeof(proto_##type));
	PROTO_RECORD_FIELDS(PROTO_PUT)
	memcpy(at, r->boot_id, sizeof(r->boot_id));
	at += sizeof(r->boot_id);
	memcpy(at, r->why, strnlen(r->why, PROTO_WHY_LEN - 1));
	at += PROTO_WHY_LEN;
	PROTO_RECORD_MORE(PROTO_PUT)
#undef PROTO_PUT
	(void)wire_put(out + CHECKSUM_AT, checksum(out, CHECKSUM_AT), 8);
}

int proto_get_record(const uint8_t *bytes, size_t len, struct proto_record *ret)
{
	const uint8_t *at = bytes, *sum = bytes + CHECKSUM_AT;
	struct proto_record r = {0};

	if (len != PROTO_RECORD_SIZE || wire_get(&at, 4) != RECORD_MAGIC ||
	    wire_get(&at, 2) != PROTO_VERSION || wire_get(&at, 2) != PROTO_RECORD_SIZE ||
	    wire_get(&sum, 8) != checksum(bytes, CHECKSUM_AT))
		return -ERR_FORMAT;
#define PROTO_GET(type, name) r.name = (proto_##type)wire_get(&at, sizeof(proto_##type));
	PROTO_RECORD_FIELDS(PROTO_GET)
	memcpy(r.boot_id, at, sizeof(r.boot_id));
	at += sizeof(r.boot_id);
	memcpy(r.why, at, PROTO_WHY_LEN - 1);
	at += PROTO_WHY_LEN;
	PROTO_RECORD_MORE(PROTO_GET)
#undef PROTO_GET
	*ret = r;
	return 0;
}

int proto_read_status(int fd, struct proto_record *ret)
{
	uint8_t bytes[PROTO_RECORD_SIZE];
	struct proto_record r, best = {0};
	int found = -ERR_NOT_FOUND;

	for (int slot = 0; slot < 2; slot++) {
		ssize_t n = pread(fd, bytes, sizeof(bytes),
				  (off_t)slot * PROTO_SLOT_DISTANCE);

		if (n < 0 || proto_get_record(bytes, (size_t)n, &r) != 0)
			continue;
		if (found != 0 || r.seq > best.seq)
			best = r;
		found = 0;
	}
	if (found == 0)
		*ret = best;
	return found;
}

int proto_write_status(int fd, struct proto_record *r)
{
	uint8_t bytes[PROTO_RECORD_SIZE];
	off_t at = (off_t)(++r->seq % 2) * PROTO_SLOT_DISTANCE;
	ssize_t n;

	proto_put_record(bytes, r);
	n = pwrite(fd, bytes, sizeof(bytes), at);
	if (n == (ssize_t)sizeof(bytes))
		return 0;
	if (n >= 0)
		errno = ENOSPC;
	return -ERR_SYS;
}

/* ---- the spec ----
 *
 * magic, version, flags, uid, boot id, the numbers, the counts of arguments, variables and limits;
 * then the limits, of 20 bytes each; then cwd, arguments and variables, each as length,
 * bytes, NUL.
 */

#define SPEC_FIXED (4 + 4 + PROTO_UID_LEN + 16 + 4 + 4 + 4 * 8 + 4 + 4 + 4)
#define SPEC_LIMIT (4 + 8 + 8)

static void put_limit(struct buf *out, const struct proto_limit *l)
{
	uint8_t bytes[SPEC_LIMIT], *at = bytes;

	at = wire_put(at, l->resource, 4);
	at = wire_put(at, l->soft, 8);
	(void)wire_put(at, l->hard, 8);
	buf_add(out, bytes, sizeof(bytes));
}

static struct proto_limit get_limit(const uint8_t **at)
{
	struct proto_limit l;

	l.resource = (uint32_t)wire_get(at, 4);
	l.soft = wire_get(at, 8);
	l.hard = wire_get(at, 8);
	return l;
}

static void put_string(struct buf *out, const char *s)
{
	size_t len = strlen(s);
	uint8_t head[4];

	(void)wire_put(head, len, sizeof(head));
	buf_add(out, head, sizeof(head));
	buf_add(out, s, len + 1);
}

int proto_put_spec(struct buf *out, const struct proto_spec *s)
{
	uint8_t fixed[SPEC_FIXED], *at = fixed;

	at = wire_put(at, SPEC_MAGIC, 4);
	at = wire_put(at, PROTO_VERSION, 2);
	at = wire_put(at, s->flags, 2);
	memcpy(at, s->uid, PROTO_UID_LEN);
	at += PROTO_UID_LEN;
	memcpy(at, s->boot_id, sizeof(s->boot_id));
	at += sizeof(s->boot_id);
	at = wire_put(at, s->umask, 4);
	at = wire_put(at, (uint64_t)s->oom_score_adj, 4);
	at = wire_put(at, (uint64_t)s->deadline_ms, 8);
	at = wire_put(at, (uint64_t)s->grace_ms, 8);
	at = wire_put(at, s->log_head, 8);
	at = wire_put(at, s->log_tail, 8);
	at = wire_put(at, s->argc, 4);
	at = wire_put(at, s->envc, 4);
	(void)wire_put(at, s->n_limits, 4);
	buf_add(out, fixed, sizeof(fixed));
	for (size_t i = 0; i < s->n_limits; i++)
		put_limit(out, &s->limits[i]);
	put_string(out, s->cwd);
	for (size_t i = 0; i < s->argc; i++)
		put_string(out, s->argv[i]);
	for (size_t i = 0; i < s->envc; i++)
		put_string(out, s->env[i]);
	return buf_error(out);
}

/* The next string, or NULL. */
static char *get_string(char **at, const char *end)
{
	const uint8_t *head = (const uint8_t *)*at;
	char *s = *at + 4;
	size_t len;

	if (end - *at < 5)
		return NULL;
	len = (size_t)wire_get(&head, 4);
	if (len >= (size_t)(end - s) || memchr(s, 0, len) || s[len] != 0)
		return NULL;
	*at = s + len + 1;
	return s;
}

static bool get_strings(char **at, const char *end, char **ret, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ret[i] = get_string(at, end);
		if (!ret[i])
			return false;
	}
	return true;
}

static bool is_uid(const char *s)
{
	return strspn(s, "0123456789abcdef") == PROTO_UID_LEN && s[PROTO_UID_LEN] == 0;
}

/* The arrays; their counts are bounded by what the file can hold at all. */
static int get_arrays(char *at, const char *end, struct proto_spec *s)
{
	size_t most = (size_t)(end - at) / 5;
	char **block;

	if (s->argc == 0 || s->argc > most || s->envc > most)
		return -ERR_FORMAT;
	block = mem_try(NULL, (s->argc + s->envc + 2) * sizeof(*block));
	if (!block)
		return -ERR_NOMEM;
	s->argv = block;
	s->env = block + s->argc + 1;
	s->argv[s->argc] = NULL;
	s->env[s->envc] = NULL;
	s->cwd = get_string(&at, end);
	if (s->cwd && s->cwd[0] == '/' && get_strings(&at, end, s->argv, s->argc) &&
	    get_strings(&at, end, s->env, s->envc) && at == end)
		return 0;
	mem_free(NULL, block);
	return -ERR_FORMAT;
}

int proto_get_spec(char *bytes, size_t len, struct proto_spec *ret)
{
	const uint8_t *at = (const uint8_t *)bytes;
	struct proto_spec s = {0};
	int rc;

	if (len < SPEC_FIXED || len > MAX_SPEC || wire_get(&at, 4) != SPEC_MAGIC ||
	    wire_get(&at, 2) != PROTO_VERSION)
		return -ERR_FORMAT;
	s.flags = (uint32_t)wire_get(&at, 2);
	memcpy(s.uid, at, PROTO_UID_LEN);
	at += PROTO_UID_LEN;
	memcpy(s.boot_id, at, sizeof(s.boot_id));
	at += sizeof(s.boot_id);
	s.umask = (uint32_t)wire_get(&at, 4);
	s.oom_score_adj = (int32_t)wire_get(&at, 4);
	s.deadline_ms = (int64_t)wire_get(&at, 8);
	s.grace_ms = (int64_t)wire_get(&at, 8);
	s.log_head = wire_get(&at, 8);
	s.log_tail = wire_get(&at, 8);
	s.argc = (size_t)wire_get(&at, 4);
	s.envc = (size_t)wire_get(&at, 4);
	s.n_limits = (size_t)wire_get(&at, 4);
	if (!is_uid(s.uid) || s.flags & ~PROTO_SPEC_STDIN || s.deadline_ms < 0 ||
	    s.grace_ms < 0 || s.n_limits > PROTO_LIMITS_MAX ||
	    len - SPEC_FIXED < s.n_limits * SPEC_LIMIT)
		return -ERR_FORMAT;
	for (size_t i = 0; i < s.n_limits; i++)
		s.limits[i] = get_limit(&at);
	rc = get_arrays(bytes + SPEC_FIXED + s.n_limits * SPEC_LIMIT, bytes + len, &s);
	if (rc == 0)
		*ret = s;
	return rc;
}
