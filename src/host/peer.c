/* SPDX-License-Identifier: MIT */
#include "host/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"

/* ---- namespaces ---- */

/* False: it is not to be read. */
static bool read_namespace(const char *process, const char *kind, char *ret, size_t size)
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, kind);
	n = readlink(path, ret, size - 1);
	if (n < 0)
		return false;
	ret[n] = 0;
	return true;
}

static bool is_contained(pid_t pid)
{
	static const char *const kinds[] = {"user", "pid"};
	char process[24], theirs[64], ours[64];

	(void)snprintf(process, sizeof(process), "%ld", (long)pid);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (read_namespace(process, kinds[i], theirs, sizeof(theirs)) &&
		    read_namespace("self", kinds[i], ours, sizeof(ours)) &&
		    strcmp(theirs, ours) != 0)
			return true;
	return false;
}

int peer_check(int fd, bool may_be_contained, struct peer *ret, struct err *err)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return err_sys(err, errno, "cannot tell who connects");
	if (cred.uid != geteuid())
		return err_set(err, ERR_STATE,
			       "this host serves uid %u only, and you are uid %u",
			       (unsigned)geteuid(), (unsigned)cred.uid);
	/* A peer of another pid namespace that ours does not hold is 0 here. */
	if (!may_be_contained && (cred.pid == 0 || is_contained(cred.pid)))
		return err_set(
			err, ERR_STATE,
			"you are in a user or pid namespace of your own, where tasks "
			"of this host (pid %ld) would not run; start it with "
			"ERRAND_DAEMON_CONTAINED_CLIENTS=1 to allow that",
			(long)getpid());
	ret->pid = cred.pid;
	ret->uid = cred.uid;
	return 0;
}

/* ---- /proc ---- */

static ssize_t read_start(pid_t pid, const char *name, char *ret, size_t size)
{
	autoclose int fd = -1;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, ret, size - 1);
	if (n >= 0)
		ret[n] = 0;
	return n;
}

pid_t peer_parent(pid_t pid)
{
	char text[512], state;
	const char *name_end;
	int parent = 0;

	if (read_start(pid, "stat", text, sizeof(text)) <= 0)
		return 0;
	name_end = strrchr(text, ')'); /* the name itself may hold anything */
	if (!name_end || sscanf(name_end, ") %c %d", &state, &parent) != 2)
		return 0;
	return parent;
}

bool peer_task(pid_t pid, char ret[PEER_TASK])
{
	static const char name[] = "ERRAND_TASK=";
	size_t size = MIB(4), name_len = sizeof(name) - 1;
	autofree char *text = mem_try(NULL, size);
	ssize_t n = text ? read_start(pid, "environ", text, size) : -1;

	for (const char *p = text; n > 0 && p < text + n; p += strlen(p) + 1) {
		if (strncmp(p, name, name_len) != 0)
			continue;
		(void)snprintf(ret, PEER_TASK, "%s", p + name_len);
		return true;
	}
	return false;
}
