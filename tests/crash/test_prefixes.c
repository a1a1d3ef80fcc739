/* SPDX-License-Identifier: MIT */
/*
 * Recovery from every point of a task's life: host and shim are recorded (recorder.h), then
 * each prefix of what they changed in the run folder is made anew, also with its last write
 * torn, and a host comes to it in which nobody lives any more.
 *
 * An end that was written whole is the end; without one it is lost, never an exit code. The
 * log is what had been written of it. A shim that comes after the host starts nothing.
 */
#include "recorder.h"

#include "faulty.h"
#include "hosts.h"

#define CHANGES_MAX 4000

/* ---- lives ---- */

struct life {
	const char *argv[4]; /* $M is a file that shows that it ran */
	enum run_cause cause;
	int code; /* or signal */
	int64_t deadline_ms;
	uint64_t log_head, log_tail;
	void (*host)(struct world *w, struct job *j); /* its part */
};

/* What it prints is "0000001\n", "0000002\n" and so on: each offset has one byte. */
#define RAN "echo >>$M; printf '%07d\\n' 1; "

static void only_wait(struct world *w, struct job *j)
{
	job_wait(w, j);
}

static void kill_it(struct world *w, struct job *j)
{
	job_says(w, j, "0000001");
	run_kill(j->task);
	job_wait(w, j);
}

static void drop_it(struct world *w, struct job *j)
{
	job_wait(w, j);
	wait_until(w, is_folder_free(w));
	run_drop(j->task);
	run_flush(w->run);
}

static void leave_it(struct world *w, struct job *j)
{
	job_says(w, j, "0000001");
	run_leave(w->run);
	wait_until(w, only_folder(w)[0] == 0);
}

static const struct life exits = {
	.argv = {"bash", "-c", RAN "exit 3"}, .code = 3, .host = drop_it};
static const struct life is_killed = {.argv = {"bash", "-c", RAN "exec sleep 60"},
				      .cause = RUN_KILL,
				      .code = SIGTERM,
				      .host = kill_it};
static const struct life is_left = {.argv = {"bash", "-c", RAN "exec sleep 60"},
				    .cause = RUN_KILL,
				    .code = SIGTERM,
				    .host = leave_it};
static const struct life passes_its_deadline = {.argv = {"bash", "-c", RAN "exec sleep 60"},
						.cause = RUN_DEADLINE,
						.code = SIGTERM,
						.deadline_ms = 150,
						.host = only_wait};
static const struct life cannot_start = {
	.argv = {"/no/such/program"}, .cause = RUN_NOT_STARTED, .host = only_wait};
static const struct life rolls_its_log = {
	.argv = {"bash", "-c",
		 RAN "for i in $(seq 2 400); do printf '%07d\\n' $i; done; exit 3"},
	.code = 3,
	.log_head = 500,
	.log_tail = 1000,
	.host = only_wait};

/* ---- recording ---- */

struct recorded {
	char uid[PROTO_UID_LEN + 1];
	char marker[80];
	const struct life *life;
	struct change changes[CHANGES_MAX];
	const uint8_t *bytes[CHANGES_MAX];
	size_t count;
	uint8_t *whole;
};

static struct recorded rec;

static void load_record(const char *path)
{
	struct stat st;
	size_t size;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	size = (size_t)st.st_size;
	free(rec.whole);
	rec.whole = malloc(size);
	assert_int_equal(read(fd, rec.whole, size), size);
	(void)close(fd);
	rec.count = 0;
	for (size_t at = 0; at < size;) {
		struct change *c = &rec.changes[rec.count];

		assert_true(rec.count < CHANGES_MAX);
		memcpy(c, rec.whole + at, sizeof(*c));
		rec.bytes[rec.count++] = rec.whole + at + sizeof(*c);
		at += sizeof(*c) + c->len;
	}
}

/* Shims of @w are recorded from now on, and this process as their host. */
static void begin_recording(struct world *w, char *path, size_t size)
{
	char script[128], text[8192];

	(void)snprintf(path, size, "%s/record", w->folder);
	(void)snprintf(script, sizeof(script), "%s/shim", w->folder);
	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\nERRAND_RECORD=%s exec "
		       "%s/tests/fault/errand-shim-faults\n",
		       path, getenv("ERRAND_BUILD"));
	put_file(script, text, 0700);
	run_free(w->run);
	assert_int_equal(run_new(w->folder, script, &w->run, NULL), 0);
	recorder_begin(path);
}

static struct run_spec spec_of_life(struct world *w, const struct life *l)
{
	static char variable[96];
	static const char *env[] = {"PATH=/bin:/usr/bin", variable, NULL};
	struct run_spec spec = spec_of(w, l->argv);

	(void)snprintf(rec.marker, sizeof(rec.marker), "%s/ran", w->folder);
	(void)snprintf(variable, sizeof(variable), "M=%s", rec.marker);
	w->context.env = env;
	spec.deadline_ms = l->deadline_ms;
	if (l->log_head) {
		spec.log_head = l->log_head;
		spec.log_tail = l->log_tail;
	}
	return spec;
}

static void record(struct world *w, const struct life *l)
{
	char path[128];
	struct run_spec spec;
	struct job j;

	begin_recording(w, path, sizeof(path));
	rec.life = l;
	spec = spec_of_life(w, l);
	job_start_spec(w, &j, &spec);
	(void)snprintf(rec.uid, sizeof(rec.uid), "%s", run_uid(j.task));
	l->host(w, &j);
	wait_until(w, is_folder_free(w));
	recorder_begin(NULL);
	load_record(path);
	if (only_folder(w)[0])
		run_drop(j.task);
	run_flush(w->run);
	(void)unlink(rec.marker);
	(void)unlink(path);
	assert_string_equal(only_folder(w), "");
	run_free(w->run);
	assert_int_equal(run_new(w->folder, shim_path(), &w->run, NULL), 0);
}

/* ---- making it anew ---- */

static void path_of(const struct world *w, const char *name, char path[512])
{
	(void)snprintf(path, 512, "%s/tasks/%s/%s", w->folder, rec.uid, name);
}

/* @len bytes of @bytes: at an offset, or at the end. */
static void write_into(const char *path, const struct change *c, const uint8_t *bytes,
		       size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	if (c->kind == CHANGE_PUT)
		assert_int_equal(pwrite(fd, bytes, len, (off_t)c->offset), len);
	else
		assert_true(lseek(fd, 0, SEEK_END) >= 0 &&
			    write(fd, bytes, len) == (ssize_t)len);
	(void)close(fd);
}

/* The door of a shim that is dead. */
static void bind_into(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%.100s", path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
	(void)close(fd);
}

static void apply(const struct world *w, size_t i, size_t len)
{
	const struct change *c = &rec.changes[i];
	char path[512];
	int fd;

	path_of(w, c->kind == CHANGE_MKDIR || c->kind == CHANGE_RMDIR ? "" : c->name, path);
	switch ((enum change_kind)c->kind) {
	case CHANGE_MKDIR:
		assert_int_equal(mkdir(path, 0700), 0);
		break;
	case CHANGE_CREATE:
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0 && close(fd) == 0);
		break;
	case CHANGE_APPEND:
	case CHANGE_PUT:
		write_into(path, c, rec.bytes[i], len);
		break;
	case CHANGE_BIND:
		bind_into(path);
		break;
	case CHANGE_UNLINK:
		assert_int_equal(unlink(path), 0);
		break;
	case CHANGE_RMDIR:
		assert_int_equal(rmdir(path), 0);
		break;
	}
}

/* ---- what it has to mean ---- */

/* Of the first @n changes. */
struct truth {
	bool is_there;       /* the folder */
	bool is_being_taken; /* somebody has begun to delete it */
	bool is_spec_whole, is_begun, is_ended;
	bool has_status; /* as far as a shim is concerned: there is a record */
};

static void note_record(struct truth *t, const uint8_t *bytes, size_t len)
{
	struct proto_record r;

	if (proto_get_record(bytes, len, &r) != 0)
		return;
	t->has_status = true;
	t->is_begun |= r.shim_pid != 0;
	t->is_ended |= r.state == PROTO_ENDED;
}

static struct truth truth_of(size_t n)
{
	struct truth t = {0};

	for (size_t i = 0; i < n; i++) {
		const struct change *c = &rec.changes[i];
		bool is_spec = strcmp(c->name, PROTO_SPEC) == 0;

		if (c->kind == CHANGE_MKDIR)
			t.is_there = true;
		if (c->kind == CHANGE_RMDIR)
			t.is_there = false;
		if (c->kind == CHANGE_UNLINK &&
		    (strcmp(c->name, PROTO_OUT) == 0 || strcmp(c->name, PROTO_STATUS) == 0))
			t.is_being_taken = true;
		if (c->kind == CHANGE_APPEND && is_spec)
			t.is_spec_whole = true;
		if (c->kind == CHANGE_UNLINK && is_spec)
			t.is_spec_whole = false;
		if (c->kind == CHANGE_PUT)
			note_record(&t, rec.bytes[i], c->len);
	}
	return t;
}

static void expect_own_end(const struct run_end *e)
{
	const struct life *l = rec.life;

	assert_int_equal(e->cause, l->cause);
	if (l->cause == RUN_EXIT)
		assert_int_equal(WEXITSTATUS(e->wait_status), l->code);
	else if (l->cause == RUN_NOT_STARTED)
		assert_string_equal(
			e->why, "cannot run '/no/such/program': No such file or directory");
	else
		assert_int_equal(WTERMSIG(e->wait_status), l->code);
}

static void expect_lost(const struct run_end *e, const struct truth *t)
{
	assert_int_equal(e->cause, RUN_LOST);
	if (!t->is_there)
		assert_string_equal(e->why, "the run folder is gone");
	else if (!t->is_being_taken)
		assert_string_equal(e->why, t->is_begun ? "the supervisor was killed"
							: "it never ran");
}

static char byte_at(uint64_t offset)
{
	char line[16];

	(void)snprintf(line, sizeof(line), "%07u\n", (unsigned)(offset / 8 + 1));
	return line[offset % 8];
}

static uint64_t bytes_on_disk(const struct world *w)
{
	char path[512];
	uint64_t sum = 0;
	struct dirent *e;
	struct stat st;
	DIR *dir;

	path_of(w, "", path);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		path_of(w, e->d_name, path);
		if (strncmp(e->d_name, PROTO_OUT, strlen(PROTO_OUT)) == 0 &&
		    stat(path, &st) == 0)
			sum += (uint64_t)st.st_size;
	}
	if (dir)
		(void)closedir(dir);
	return sum;
}

/* Every byte that is on the disk, and no other. */
static void expect_log(const struct world *w, struct job *j)
{
	autobuf struct buf text = BUF_INIT(1 << 20);
	uint64_t at = 0, from = 0, sum = 0;
	struct err err = {0};

	do {
		buf_clear(&text);
		assert_int_equal(run_log_read(j->task, at, 300, &text, &from, &err), 0);
		for (size_t i = 0; i < text.len; i++)
			assert_int_equal(text.data[i], byte_at(from + i));
		sum += text.len;
		at = from + text.len;
	} while (text.len);
	assert_int_equal(sum, bytes_on_disk(w));
}

/* A shim that comes late, and runs its task only if it may. */
static void late_one(const struct world *w, bool may_run)
{
	int status = late_shim(w);

	assert_true(WIFEXITED(status));
	assert_int_equal(unlink(rec.marker) == 0, may_run);
}

static void attach(struct world *w, struct job *j)
{
	*j = (struct job){0};
	assert_int_equal(run_attach(w->run, rec.uid, job_ended, j, &j->task, NULL), 0);
	run_turn(w->run, clock_mono_ms()); /* nobody lives there: it is known at once */
	job_wait(w, j);
}

static void forget(struct world *w, struct job *j)
{
	run_drop(j->task);
	run_flush(w->run);
	assert_string_equal(only_folder(w), "");
	assert_int_equal(access(rec.marker, F_OK), -1); /* nothing ran */
}

/* The first @n changes, and @len bytes of the next one. */
static void make_prefix(const struct world *w, size_t n, size_t len)
{
	for (size_t i = 0; i < n; i++)
		apply(w, i, rec.changes[i].len);
	if (len)
		apply(w, n, len);
}

static void recover(struct world *w, size_t n, size_t len)
{
	struct truth t = truth_of(n);
	struct job j;

	make_prefix(w, n, len);
	attach(w, &j);
	if (t.is_being_taken && j.end.cause == RUN_LOST)
		expect_lost(&j.end, &t);
	else if (t.is_there && t.is_ended)
		expect_own_end(&j.end);
	else
		expect_lost(&j.end, &t);
	expect_log(w, &j);
	if (t.is_there && len == 0)
		late_one(w, false);
	forget(w, &j);
}

/* The same prefix, but a shim comes before the host does: only a whole spec is run. */
static void shim_first(struct world *w, size_t n, size_t len)
{
	struct truth t = truth_of(n);
	bool is_runnable = t.is_spec_whole && !t.has_status;
	struct job j;

	if (!t.is_there || t.is_being_taken)
		return;
	make_prefix(w, n, len);
	late_one(w, is_runnable && rec.life->cause == RUN_EXIT);
	attach(w, &j);
	if (is_runnable || t.is_ended)
		expect_own_end(&j.end);
	else if (!t.has_status && j.end.cause == RUN_NOT_STARTED)
		assert_memory_equal(j.end.why, "cannot read the spec", 20);
	else
		expect_lost(&j.end, &t);
	forget(w, &j);
}

static bool is_written(size_t i)
{
	return rec.changes[i].kind == CHANGE_APPEND || rec.changes[i].kind == CHANGE_PUT;
}

/* All prefixes; of what is written, each @step bytes. */
static void recover_from_everything(struct world *w, const struct life *l, size_t step)
{
	unsigned torn = 0;

	record(w, l);
	for (size_t n = 0; n <= rec.count; n++) {
		recover(w, n, 0);
		for (size_t len = 1;
		     n < rec.count && is_written(n) && len < rec.changes[n].len;
		     len += step, torn++)
			recover(w, n, len);
	}
	print_message("# %zu changes, %u torn writes\n", rec.count, torn);
	assert_in_range(rec.count, 8, CHANGES_MAX);
}

TASK_TEST(a_task_that_exits_is_recovered_from_every_byte_that_was_written)
{
	recover_from_everything(w, &exits, 1);
}

TASK_TEST(a_killed_task_is_recovered_from_every_change)
{
	recover_from_everything(w, &is_killed, 61);
}

TASK_TEST(a_task_whose_host_left_is_recovered_from_every_change)
{
	recover_from_everything(w, &is_left, 61);
}

TASK_TEST(a_task_with_a_deadline_is_recovered_from_every_change)
{
	recover_from_everything(w, &passes_its_deadline, 61);
}

TASK_TEST(a_task_that_could_not_start_is_recovered_from_every_change)
{
	recover_from_everything(w, &cannot_start, 61);
}

TASK_TEST(a_rolled_log_is_recovered_from_every_change)
{
	recover_from_everything(w, &rolls_its_log, 61);
}

/* The log is not synced: a record that reached the disk may tell of bytes that did not. */
TASK_TEST(what_a_power_cut_took_of_a_log_is_missing_and_not_made_up)
{
	char path[512];
	size_t n = 0;
	struct job j;

	record(w, &exits);
	while (!truth_of(n).is_ended)
		n++;
	for (off_t len = 0; len <= 8; len++) {
		make_prefix(w, n, 0);
		path_of(w, PROTO_OUT, path);
		assert_int_equal(truncate(path, len), 0);
		attach(w, &j);
		expect_own_end(&j.end);
		expect_log(w, &j);
		assert_int_equal(run_log_end(j.task), 8);
		assert_int_equal(run_log_missing(j.task, 0, 8), 8 - len);
		forget(w, &j);
	}
}

/* ---- the other order ---- */

TASK_TEST(a_shim_that_comes_first_runs_only_a_whole_spec)
{
	record(w, &exits);
	for (size_t n = 0; n < rec.count; n++) {
		shim_first(w, n, 0);
		for (size_t len = 1; rec.changes[n].kind == CHANGE_APPEND &&
				     strcmp(rec.changes[n].name, PROTO_SPEC) == 0 &&
				     len < rec.changes[n].len;
		     len++)
			shim_first(w, n, len);
	}
}

/* The first @n changes as a record, to which others come. */
static void save_beginning(const char *path, size_t n)
{
	size_t size = (size_t)(rec.bytes[n] - rec.whole) - sizeof(struct change);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && write(fd, rec.whole, size) == (ssize_t)size);
	(void)close(fd);
}

/* A host declares a folder void, and dies on the way: nobody starts anything there, but who
 * came before its word was whole. */
TASK_TEST(a_folder_that_is_being_declared_void_stays_so)
{
	size_t first = 0;
	char path[128];
	struct job j;

	record(w, &exits);
	while (rec.changes[first++].kind != CHANGE_APPEND)
		;
	(void)snprintf(path, sizeof(path), "%s/record", w->folder);
	save_beginning(path, first);
	make_prefix(w, first, 0);
	recorder_begin(path);
	attach(w, &j);
	recorder_begin(NULL);
	run_drop(j.task);
	run_flush(w->run);
	load_record(path);
	assert_in_range(rec.count, first + 3, first + 6);
	for (size_t n = first; n <= rec.count; n++) {
		recover(w, n, 0);
		shim_first(w, n, 0);
		for (size_t len = 1; n < rec.count && len < rec.changes[n].len; len += 7) {
			recover(w, n, len);
			shim_first(w, n, len);
		}
	}
}
