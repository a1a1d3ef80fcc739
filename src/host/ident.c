/* SPDX-License-Identifier: MIT */
#include "host/ident.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

void ident_uuid(char *ret)
{
	uint8_t b[16];

	/* Never fails for 16 bytes once the kernel has booted. */
	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		abort();
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	for (int i = 0, at = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			ret[at++] = '-';
		(void)snprintf(ret + at, 3, "%02x", b[i]);
		at += 2;
	}
}

const char *ident_session(const char *session)
{
	const char *names[] = {session, getenv("ERRAND_SESSION"),
			       getenv("CLAUDE_CODE_SESSION_ID")};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i] && *names[i])
			return names[i];
	return NULL;
}

char *ident_owner(const char *session)
{
	const char *name = ident_session(session);
	char uuid[IDENT_UUID + 1];

	if (name)
		return mem_dup(NULL, name, strlen(name));
	ident_uuid(uuid);
	return mem_dup(NULL, uuid, strlen(uuid));
}

char *ident_home(char *const *env)
{
	const struct passwd *pw;
	const char *home = "/nonexistent";

	for (; env && *env; env++)
		if (strncmp(*env, "HOME=/", strlen("HOME=/")) == 0)
			return mem_dup(NULL, *env + strlen("HOME="),
				       strlen(*env) - strlen("HOME="));
	pw = getpwuid(geteuid());
	if (pw)
		home = pw->pw_dir;
	return mem_dup(NULL, home, strlen(home));
}

/* The shim in @rest below @folder: one who reads its path is to find no "..". */
static char *shim_in(const char *folder, const char *rest)
{
	struct buf path = BUF_INIT(PATH_MAX);
	char real[PATH_MAX];

	buf_addf(&path, "%s/%s", folder, rest);
	if (!buf_error(&path) && realpath(path.data, real)) {
		buf_clear(&path);
		buf_addf(&path, "%s/errand-shim", real);
	}
	if (!buf_error(&path) && access(path.data, X_OK) == 0)
		return buf_take(&path, NULL);
	buf_release(&path);
	return NULL;
}

char *ident_shim(struct err *err)
{
	static const char *const places[] = {".", "../libexec/errand"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *found;

	if (n < 0) {
		(void)err_sys(err, errno, "cannot find our own program");
		return NULL;
	}
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		found = shim_in(self, places[i]);
		if (found)
			return found;
	}
	(void)err_set(err, ERR_NOT_FOUND,
		      "cannot find errand-shim in '%.90s' or '../libexec/errand' beside it",
		      self);
	return NULL;
}
