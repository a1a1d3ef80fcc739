/* SPDX-License-Identifier: MIT */
#include "host/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/mem.h"
#include "host/config.h"
#include "host/ident.h"

#define TASKS "tasks"
#define LOCK_PATIENCE_MS 1000
#define LOCK_PAUSE_MS 10

static char *join(const char *a, const char *b)
{
	struct buf out = BUF_INIT(PATH_MAX);
	bool needs_slash = *a && a[strlen(a) - 1] != '/';

	buf_addf(&out, "%s%s%s", a, needs_slash ? "/" : "", b);
	if (buf_error(&out))
		buf_clear(&out);
	return buf_take(&out, NULL);
}

/* ---- making folders ---- */

static int make_parents(const char *path, struct err *err)
{
	autofree char *copy = mem_dup(NULL, path, strlen(path));

	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "cannot make '%s'", copy);
		*p = '/';
	}
	return 0;
}

/* Whoever else may write here can run commands as us; whoever can read sees all output. */
static int check_private(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot look at '%s'", path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_STATE,
			       "the folder '%s' belongs to uid %u, not to us", path,
			       (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return err_set(
			err, ERR_STATE,
			"the folder '%s' is open to others (mode %04o): chmod 700 it", path,
			(unsigned)(st.st_mode & 07777));
	return 0;
}

static int open_private(const char *path, int *ret_fd, struct err *err)
{
	autoclose int fd = open(path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_RDONLY);
	int rc;

	if (fd < 0)
		return err_sys(err, errno, "cannot use '%s'", path);
	rc = check_private(fd, path, err);
	if (rc == 0 && ret_fd)
		*ret_fd = take_fd(&fd);
	return rc;
}

static int make_private(const char *path, int *ret_fd, struct err *err)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "cannot make '%s'", path);
	return open_private(path, ret_fd, err);
}

static int random_name(char *ret, size_t size, struct err *err)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return err_sys(err, errno, "no random bytes");
	(void)snprintf(ret, size, ".%016" PRIx64, bits);
	return 0;
}

/* ---- the host's own folder ---- */

static int make_lock(const char *folder, int *ret_fd, struct err *err)
{
	autofree char *path = join(folder, STATE_LOCK);
	autoclose int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "cannot make '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(err, errno, "cannot lock '%s'", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

/*
 * Under a name with a dot, until the lock is in it and held: nobody else ever sees the folder
 * without, which would mean that it may be deleted.
 */
static int make_own(struct state *s, struct err *err)
{
	autofree char *early = NULL;
	char name[32];
	int rc = random_name(name, sizeof(name), err);

	if (rc < 0)
		return rc;
	early = join(s->parent, name);
	s->path = join(s->parent, name + 1);
	if (mkdir(early, 0700) < 0)
		return err_sys(err, errno, "cannot make '%s'", early);
	rc = make_lock(early, &s->lock_fd, err);
	if (rc < 0) {
		(void)rmdir(early);
		return rc;
	}
	if (rename(early, s->path) < 0)
		return err_sys(err, errno, "cannot make '%s'", s->path);
	return 0;
}

static int open_in(struct state *s, const char *state, struct err *err)
{
	int rc = make_parents(state, err);

	if (rc == 0)
		rc = make_private(state, NULL, err);
	if (rc < 0)
		return rc;
	s->parent = join(state, "embedded");
	rc = make_private(s->parent, NULL, err);
	return rc < 0 ? rc : make_own(s, err);
}

static void forget(struct state *s)
{
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->folder_fd >= 0)
		close(s->folder_fd);
	mem_free(NULL, s->path);
	mem_free(NULL, s->parent);
	mem_free(NULL, s->temporary);
	*s = (struct state)STATE_NONE;
}

/* ---- which folder ---- */

static char *default_path(void)
{
	autofree char *home = ident_home(environ);

	return join(home, ".local/state/errand");
}

static int open_temporary(struct state *s, struct err *err)
{
	const char *tmp = getenv("TMPDIR");

	s->temporary = join(tmp && *tmp == '/' ? tmp : "/tmp", "errand-XXXXXX");
	if (!mkdtemp(s->temporary))
		return err_sys(err, errno, "cannot make a temporary state folder '%s'",
			       s->temporary);
	return open_in(s, s->temporary, err);
}

/* Not there and not to be made, or not to be written: not somebody's trap. */
static bool is_unwritable(const struct err *e)
{
	return e->errnum == EACCES || e->errnum == EROFS || e->errnum == ENOENT ||
	       e->errnum == EPERM || e->errnum == ENOTDIR || e->errnum == ENOSPC ||
	       e->errnum == EDQUOT;
}

static char *absolute(const char *path)
{
	autofree char *cwd = NULL;

	if (*path == '/')
		return mem_dup(NULL, path, strlen(path));
	cwd = getcwd(NULL, 0);
	return join(cwd ? cwd : "/", path);
}

/* --state, ERRAND_STATE, the configuration, or, and then nobody has asked for it, the default. */
static int which(const char *given, char **ret, bool *ret_is_default, struct err *err)
{
	struct config c = {0};
	int rc = 0;

	*ret_is_default = false;
	if (!given)
		given = getenv("ERRAND_STATE");
	if (given && *given) {
		*ret = absolute(given);
		return 0;
	}
	rc = config_read(&c, environ, err);
	if (rc < 0)
		return rc;
	*ret_is_default = c.state_folder == NULL;
	*ret = *ret_is_default ? default_path() : take_ptr(&c.state_folder);
	config_release(&c);
	return 0;
}

int state_open_embedded(struct state *ret, const char *given, struct err *err)
{
	autofree char *path = NULL;
	struct state s = STATE_NONE;
	struct err why = {0};
	bool is_default;
	int rc = which(given, &path, &is_default, err);

	if (rc < 0)
		return rc;
	rc = open_in(&s, path, &why);
	if (rc < 0 && is_default && is_unwritable(&why)) {
		forget(&s);
		rc = open_temporary(&s, &why);
	}
	if (rc < 0) {
		if (err)
			*err = why;
		forget(&s);
		return err_wrap(err, "state folder '%.100s'", path);
	}
	*ret = s;
	return 0;
}

/* ---- all of it ---- */

int state_folder(const char *given, char **ret_path, int *ret_fd, struct err *err)
{
	autofree char *path = NULL;
	bool is_default;
	int rc = which(given, &path, &is_default, err);

	if (rc < 0)
		return rc;
	rc = make_parents(path, err);
	if (rc == 0)
		rc = make_private(path, ret_fd, err);
	if (rc < 0)
		return err_wrap(err, "state folder '%.100s'", path);
	*ret_path = take_ptr(&path);
	return 0;
}

static int no_folder(const char *path, struct err *err)
{
	int rc = err_set(err, ERR_STATE,
			 "there is no state folder '%.120s': `errand run` makes it, if "
			 "--state and ERRAND_STATE are right",
			 path);

	if (err)
		err->errnum = ENOENT;
	return rc;
}

int state_find(const char *given, char **ret_path, int *ret_fd, struct err *err)
{
	autofree char *path = NULL;
	struct err why = {0};
	bool is_default;
	int rc = which(given, &path, &is_default, err);

	if (rc < 0)
		return rc;
	rc = open_private(path, ret_fd, &why);
	if (rc < 0 && why.errnum == ENOENT)
		return no_folder(path, err);
	if (rc < 0) {
		if (err)
			*err = why;
		return err_wrap(err, "state folder '%.100s'", path);
	}
	*ret_path = take_ptr(&path);
	return 0;
}

/* The holder has written its number into the lock. */
static int refuse_second(int fd, const char *path, struct err *err)
{
	char text[16] = "?";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n > 0)
		text[strspn(text, "0123456789")] = 0;
	return err_set(err, ERR_STATE,
		       "another host (pid %s) has the state folder '%.100s'", text, path);
}

/* A shim that a killed host was just giving birth to holds what it has inherited, for a moment. */
static bool take_lock(int fd)
{
	struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000};

	for (int ms = 0; ms < LOCK_PATIENCE_MS; ms += LOCK_PAUSE_MS) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

static int lock_all(struct state *s, struct err *err)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	s->lock_fd = openat(s->folder_fd, STATE_LOCK,
			    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return err_sys(err, errno, "cannot open '%s/%s'", s->path, STATE_LOCK);
	if (!take_lock(s->lock_fd))
		return refuse_second(s->lock_fd, s->path, err);
	if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, text, (size_t)n, 0) != n)
		return err_sys(err, errno, "cannot write '%s/%s'", s->path, STATE_LOCK);
	return 0;
}

bool state_is_elsewhere(const struct state *s)
{
	struct stat ours, there;

	if (!s->path || fstat(s->folder_fd, &ours) < 0)
		return false;
	if (stat(s->path, &there) < 0)
		return ours.st_nlink > 0;
	return there.st_ino != ours.st_ino || there.st_dev != ours.st_dev;
}

int state_open(struct state *ret, const char *given, struct err *err)
{
	struct state s = STATE_NONE;
	int rc = state_folder(given, &s.path, &s.folder_fd, err);

	if (rc == 0)
		rc = lock_all(&s, err);
	if (rc == 0 && state_is_elsewhere(&s))
		rc = err_set(err, ERR_NOT_FOUND,
			     "the state folder '%.100s' was moved or replaced meanwhile",
			     s.path);
	if (rc < 0)
		forget(&s);
	else
		*ret = s;
	return rc;
}

bool state_has_others(const struct state *s)
{
	DIR *dir = opendir(s->parent);
	const struct dirent *e;
	const char *own = strrchr(s->path, '/') + 1;
	bool found = false;

	while (dir && !found && (e = readdir(dir)))
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			strcmp(e->d_name, own) != 0;
	if (dir)
		closedir(dir);
	return found;
}

void state_disown(struct state *s)
{
	autofree char *lock = join(s->path, STATE_LOCK);

	(void)unlink(lock);
}

void state_close(struct state *s)
{
	autofree char *tasks = NULL;

	if (!s->path)
		return;
	if (!s->parent) {
		forget(s);
		return;
	}
	/* With a task that is just ending, its shim removes the run folder a little later;
	 * what is left then is for the next host. */
	tasks = join(s->path, TASKS);
	(void)rmdir(tasks);
	(void)rmdir(s->path);
	if (s->temporary) {
		(void)rmdir(s->parent);
		(void)rmdir(s->temporary);
	}
	forget(s);
}
