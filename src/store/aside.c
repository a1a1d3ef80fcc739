/* SPDX-License-Identifier: MIT */
/* aside.c - a damaged database is kept, under a name of its own, never overwritten. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/internal.h"

#define MAX_ASIDE 10000
#define NAME_SIZE 64

/* The log first comes to its new name: it means nothing without the database beside it. */
static const char *const parts[] = {"", "-wal", "-shm"};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static bool is_taken(int dir, int n)
{
	char name[NAME_SIZE];
	struct stat st;

	for (size_t i = 0; i < N_PARTS; i++) {
		(void)snprintf(name, sizeof(name), STORE_FILE ".corrupt-%d%s", n, parts[i]);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

static int move_part(int dir, const char *part, int n, struct err *err)
{
	char from[NAME_SIZE], to[NAME_SIZE];

	(void)snprintf(from, sizeof(from), STORE_FILE "%s", part);
	(void)snprintf(to, sizeof(to), STORE_FILE ".corrupt-%d%s", n, part);
	if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) < 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot move '%s' aside", from);
	return 0;
}

int aside_move(int dir, const char *folder, const char *why, char **ret_note,
	       struct err *err)
{
	struct buf note = BUF_INIT(KIB(8));
	int n = 1, rc = 0;

	while (n < MAX_ASIDE && is_taken(dir, n))
		n++;
	for (size_t i = 0; rc == 0 && i < N_PARTS; i++)
		rc = move_part(dir, parts[i], n, err);
	if (rc != 0)
		return err_wrap(err, "'%.100s'", folder);
	(void)fsync(dir);
	(void)buf_addf(
		&note,
		"the database was damaged (%s); it is kept as '%s/" STORE_FILE
		".corrupt-%d', and a new one is begun: tasks of before are not known",
		why, folder, n);
	if (ret_note) {
		mem_free(NULL, *ret_note);
		*ret_note = buf_take(&note, NULL);
	}
	buf_release(&note);
	return 0;
}
