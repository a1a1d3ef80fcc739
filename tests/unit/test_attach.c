/* SPDX-License-Identifier: MIT */
/* A new host takes over what a dead one started: it attaches, imports, or finds it lost. */
#include <sys/resource.h>
#include <sys/file.h>

#include "asks.h"
#include "hosts.h"

#include "base/limits.h"
#include "run/internal.h"
#include "run/shims.h"
#include "shim/shim.h"

/* The name of the only run folder, without its path. */
static const char *only_uid(const struct world *w)
{
	const char *slash = strrchr(only_folder(w), '/');

	assert_non_null(slash);
	return slash + 1;
}

static void attach(struct world *w, struct job *j)
{
	struct err err = {0};

	*j = (struct job){0};
	if (run_attach(w->run, only_uid(w), job_ended, j, &j->task, &err) != 0)
		fail_msg("%s", err.msg);
}

static bool has_printed(const struct world *w)
{
	char path[4200];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_OUT);
	return stat(path, &st) == 0 && st.st_size > 0;
}

/* A task of a host that is dead, behind a gate. Before it runs, the next host might come
 * first to its lock. */
static void leave_behind(struct world *w, const char *last)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "echo before; %s; %s", gate_shut(w), last);
	assert_int_equal(host_that_dies(w->folder, command, kill_self), SIGKILL);
	wait_until(w, has_printed(w));
}

TASK_TEST(a_living_task_is_attached_and_its_end_is_heard)
{
	struct job j;

	leave_behind(w, "echo after; exit 6");
	attach(w, &j);
	job_says(w, &j, "before");
	assert_int_equal(j.ends, 0);
	gate_open(w);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 6);
	assert_string_equal(job_log(&j), "before\nafter\n");
	run_drop(j.task);
	run_flush(w->run);
	wait_until(w, only_folder(w)[0] == 0);
}

TASK_TEST(a_record_is_imported_as_often_as_one_asks)
{
	struct proto_record r;
	struct job j;

	assert_int_equal(host_that_dies(w->folder, "echo out; exit 4", kill_self), SIGKILL);
	wait_until(w, has_ended(only_folder(w), &r) && !is_alive(r.shim_pid));
	for (int i = 0; i < 2; i++) {
		attach(w, &j);
		assert_int_equal(j.ends, 0); /* never inside the call */
		job_wait(w, &j);
		assert_int_equal(j.end.cause, RUN_EXIT);
		assert_int_equal(WEXITSTATUS(j.end.wait_status), 4);
		assert_int_equal(j.end.ended_ms, r.ended_ms);
		assert_string_equal(job_log(&j), "out\n");
	}
}

TASK_TEST(a_kill_that_comes_before_the_connection_is_kept)
{
	const char *sleep = own_sleep();
	struct job j;

	leave_behind(w, sleep);
	attach(w, &j);
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(what_outlived_a_task_of_a_dead_host_is_swept_by_the_new_one)
{
	const char *sleep = own_sleep();
	struct proto_record r;
	char command[128];
	struct job j;

	(void)snprintf(command, sizeof(command), "%s & exit 0", sleep);
	assert_int_equal(host_that_dies(w->folder, command, kill_self), SIGKILL);
	wait_until(w, has_ended(only_folder(w), &r));
	attach(w, &j);
	job_wait(w, &j);
	assert_int_equal(j.end.processes_left, 1);
	assert_int_equal(count_alive(sleep), 1);
	run_kill(j.task);
	wait_until(w, count_alive(sleep) == 0);
	assert_int_equal(j.ends, 1);
}

TASK_TEST(two_hosts_hear_the_same_end)
{
	struct job a, b;

	leave_behind(w, "exit 9");
	attach(w, &a);
	attach(w, &b);
	job_says(w, &a, "before");
	gate_open(w);
	job_wait(w, &a);
	job_wait(w, &b);
	assert_int_equal(WEXITSTATUS(a.end.wait_status), 9);
	assert_int_equal(WEXITSTATUS(b.end.wait_status), 9);
}

TASK_TEST(a_host_for_whom_there_is_no_room_tries_again)
{
	int fds[SHIM_HOSTS];
	struct job j;

	leave_behind(w, "exit 2");
	for (int i = 0; i < SHIM_HOSTS; i++) {
		struct proto_packet p = {0};

		wait_until(w, (fds[i] = connect_to(only_folder(w))) >= 0);
		wait_until(w, get_packet(fds[i], &p));
	}
	attach(w, &j);
	for (int i = 0; i < 20; i++)
		world_turn(w, 5);
	for (int i = 0; i < SHIM_HOSTS; i++)
		(void)close(fds[i]);
	gate_open(w);
	job_wait(w, &j);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 2);
}

/* A host at the door; the shim may not have opened yet. */
static int knock(struct world *w)
{
	int fd = -1;

	wait_until(w, (fd = connect_to(only_folder(w))) >= 0);
	return fd;
}

static void is_greeted(struct world *w, int fd)
{
	struct proto_packet p = {0};

	wait_until(w, get_packet(fd, &p));
	(void)close(fd);
}

/* Only the soft limit, which what is started inherits. */
static void limit_descriptors(pid_t pid, rlim_t most, struct rlimit *ret_old)
{
	struct rlimit r;

	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, ret_old), 0);
	r = (struct rlimit){.rlim_cur = most, .rlim_max = ret_old->rlim_max};
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &r, NULL), 0);
}

TASK_TEST(hosts_leave_a_shim_the_descriptors_that_it_needs)
{
	const char *held = own_sleep(), *free = own_sleep();
	char command[512];
	struct rlimit old;
	int fds[12];
	struct job j;

	(void)snprintf(command, sizeof(command),
		       "setsid %s </dev/null >/dev/null 2>&1 & echo up; %s", free, held);
	limit_descriptors(0, 20, &old);
	job_start(w, &j, command);
	assert_int_equal(prlimit(0, RLIMIT_NOFILE, &old, NULL), 0);
	job_says(w, &j, "up");
	wait_until(w, count_alive(held) == 1 && count_alive(free) == 1);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		fds[i] = knock(w);
	run_kill(j.task);
	job_wait(w, &j);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		(void)close(fds[i]);
	assert_false(j.end.is_unproved);
	assert_int_equal(count_alive(held) + count_alive(free), 0);
}

TASK_TEST(a_host_that_cannot_be_taken_in_waits_and_costs_nothing)
{
	struct proto_packet p = {0};
	struct proto_record r;
	struct rlimit old;
	struct job j;
	int first, next;

	job_start(w, &j, "echo up; sleep 60");
	job_says(w, &j, "up");
	read_status(only_folder(w), &r);
	is_greeted(w, knock(w));
	limit_descriptors(r.shim_pid, 0, &old);
	first = knock(w);
	wait_until(w, process_state(r.shim_pid) == 'S');
	assert_false(get_packet(first, &p));
	assert_int_equal(prlimit(r.shim_pid, RLIMIT_NOFILE, &old, NULL), 0);
	next = knock(w);
	is_greeted(w, first);
	is_greeted(w, next);
	run_kill(j.task);
	job_wait(w, &j);
}

/* A listener is told what cannot be written. */
TASK_TEST(a_task_that_leaves_its_shim_no_room_in_files_ends_before_a_listener)
{
	struct rlimit none = {0};
	struct proto_record r;
	char command[512];
	struct job j;

	(void)snprintf(command, sizeof(command), "echo up; %s; echo lost; exit 4",
		       gate_shut(w));
	job_start(w, &j, command);
	job_says(w, &j, "up");
	read_status(only_folder(w), &r);
	assert_int_equal(prlimit(r.shim_pid, RLIMIT_FSIZE, &none, NULL), 0);
	gate_open(w);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(j.end.log_errno, EFBIG);
	assert_string_equal(job_log(&j), "up\n");
	assert_false(has_ended(only_folder(w), &r));
}

/* A tree with all that makes a kill need eyes: who ignores SIGTERM, has children, has left. */
static void start_without_descriptors(struct world *w, struct job *j, const char *sleep)
{
	struct proto_record r;
	struct rlimit none = {0};
	char command[512];

	(void)snprintf(
		command, sizeof(command),
		"trap '' TERM; (setsid bash -c '%s & %s; :' </dev/null >/dev/null 2>&1 "
		"&); %s & echo up; %s; :",
		sleep, sleep, sleep, sleep);
	job_start(w, j, command);
	wait_until(w, count_alive(sleep) == 4);
	read_status(only_folder(w), &r);
	assert_int_equal(prlimit(r.shim_pid, RLIMIT_NOFILE, &none, NULL), 0);
}

TASK_TEST(a_task_that_leaves_its_shim_no_descriptors_is_killed_with_proof)
{
	const char *sleep = own_sleep();
	struct ask q;
	struct job j;

	start_without_descriptors(w, &j, sleep);
	expect_refused(w, ask_left(&j, &q),
		       "nobody can tell what is left: the supervisor cannot read /proc");
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_false(j.end.is_unproved);
	assert_int_equal(j.end.processes_left, 0);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_host_that_such_a_shim_cannot_take_in_has_it_killed_too)
{
	const char *sleep = own_sleep();
	struct job first, j;

	start_without_descriptors(w, &first, sleep);
	attach(w, &j);
	run_drop(first.task);
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(count_alive(sleep), 0);
}

/* ---- seen from outside ---- */

struct sight {
	const char *folder;
	struct run_shim shim;
	int times;
};

static void note_shim(void *ud, const struct run_shim *shim)
{
	struct sight *s = ud;

	if (strcmp(shim->folder, s->folder) != 0)
		return;
	s->shim = *shim;
	s->times++;
}

static struct run_shim seen_in(const char *folder)
{
	struct sight s = {.folder = folder};

	run_each_shim(note_shim, &s);
	assert_int_equal(s.times, 1);
	return s.shim;
}

TASK_TEST(a_shim_is_seen_and_can_be_ended_when_its_folder_has_been_deleted)
{
	const char *sleep = own_sleep();
	char folder[256], command[128];
	struct proto_record r;
	struct run_shim shim;
	struct job j;

	(void)snprintf(command, sizeof(command), "echo up; exec %s", sleep);
	job_start(w, &j, command);
	job_says(w, &j, "up");
	(void)snprintf(folder, sizeof(folder), "%s", only_folder(w));
	read_status(folder, &r);
	shim = seen_in(folder);
	assert_int_equal(shim.pid, r.shim_pid);
	assert_int_equal(shim.task, r.pid);
	assert_false(shim.is_deleted);
	assert_int_equal(nftw(folder, remove_one, 4, FTW_DEPTH | FTW_PHYS), 0);
	shim = seen_in(folder);
	assert_int_equal(shim.pid, r.shim_pid);
	assert_true(shim.is_deleted);
	assert_int_equal(kill(shim.pid, SIGTERM), 0);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(count_alive(sleep), 0);
	wait_until(w, !is_alive(r.shim_pid));
}

/* ---- nobody lives there ---- */

TASK_TEST(a_shim_that_died_with_its_host_is_lost_and_its_tree_is_swept)
{
	const char *sleep = own_sleep();
	struct proto_record r;
	struct job j;

	assert_int_equal(host_that_dies(w->folder, sleep, kill_self), SIGKILL);
	wait_until(w, count_alive(sleep) == 1);
	read_status(only_folder(w), &r);
	assert_int_equal(kill(r.shim_pid, SIGKILL), 0);
	wait_until(w, !is_alive(r.shim_pid));
	attach(w, &j);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_LOST);
	assert_string_equal(j.end.why, "the supervisor was killed");
	assert_int_equal(count_alive(sleep), 0);
	read_status(only_folder(w), &r);
	assert_int_equal(r.state, PROTO_VOID);
}

/* What a host leaves that dies between the folder and the shim. */
static void make_unborn(const struct world *w)
{
	static char sh[] = "sh", c[] = "-c", text[128];
	char *argv[] = {sh, c, text, NULL}, *env[] = {NULL};
	struct proto_spec s = {
		.uid = "00112233445566778899aabbccddeeff",
		.umask = 022,
		.cwd = "/",
		.argv = argv,
		.env = env,
		.argc = 3,
		.log_head = 1000,
	};
	autobuf struct buf b = BUF_INIT(MAX_SPEC);
	char path[256];
	int fd;

	(void)snprintf(text, sizeof(text), "touch %s/it-ran", w->folder);
	assert_int_equal(proto_put_spec(&b, &s), 0);
	(void)snprintf(path, sizeof(path), "%s/tasks/%s", w->folder, s.uid);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/tasks/%s/%s", w->folder, s.uid, PROTO_SPEC);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, b.data, b.len), b.len);
	assert_int_equal(close(fd), 0);
}

static bool exists(const char *folder, const char *name)
{
	char path[4200];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return lstat(path, &st) == 0;
}

TASK_TEST(what_was_never_started_never_is)
{
	struct job j;

	make_unborn(w);
	attach(w, &j);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_LOST);
	assert_string_equal(j.end.why, "it never ran");
	assert_false(exists(only_folder(w), PROTO_SPEC));
	assert_int_equal(WEXITSTATUS(late_shim(w)), 1);
	assert_false(exists(w->folder, "it-ran"));
	attach(w, &j); /* a second host comes to the same */
	job_wait(w, &j);
	assert_string_equal(j.end.why, "it never ran");
}

TASK_TEST(a_late_shim_runs_what_nobody_has_declared_void)
{
	struct job j;

	make_unborn(w);
	assert_int_equal(WEXITSTATUS(late_shim(w)), 0);
	assert_true(exists(w->folder, "it-ran"));
	attach(w, &j);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
}

TASK_TEST(whoever_holds_the_lock_is_being_born)
{
	int64_t later = clock_mono_ms();
	char path[4200];
	struct job j;
	int fd;

	make_unborn(w);
	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_LOCK);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	attach(w, &j);
	for (int i = 0; i < 50; i++)
		run_turn(w->run, later += 1000);
	assert_int_equal(j.ends, 0);
	assert_true(exists(only_folder(w), PROTO_SPEC));
	(void)close(fd);
	run_turn(w->run, later + 1000);
	assert_int_equal(j.ends, 1);
	assert_int_equal(j.end.cause, RUN_LOST);
}

TASK_TEST(a_task_of_another_boot_ended_with_it)
{
	struct proto_record r = {.state = PROTO_RUNNING,
				 .boot_id = {1, 2, 3},
				 .shim_pid = getpid(),
				 .started_ms = 77};
	char path[4200];
	struct job j;
	int fd;

	make_unborn(w);
	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_STATUS);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(proto_write_status(fd, &r), 0);
	(void)close(fd);
	attach(w, &j);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_LOST);
	assert_string_equal(j.end.why, "the machine restarted");
	assert_int_equal(j.end.started_ms, 77);
}

TASK_TEST(a_folder_that_is_gone_is_said_and_a_bad_name_is_refused)
{
	static const char *const bad[] = {"", "..", "../00112233445566778899aabbccddee",
					  "00112233445566778899aabbccddeef",
					  "00112233445566778899aabbccddeeff0"};
	struct err err = {0};
	struct job j = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(run_attach(w->run, bad[i], job_ended, &j, &j.task, &err),
				 -ERR_ARG);
	assert_int_equal(run_attach(w->run, "ffffffffffffffffffffffffffffffff", job_ended,
				    &j, &j.task, &err),
			 0);
	assert_string_equal(run_uid(j.task), "ffffffffffffffffffffffffffffffff");
	job_wait(w, &j);
	assert_string_equal(j.end.why, "the run folder is gone");
}

/* ---- a shim that lets go ---- */

TASK_TEST(a_host_that_was_let_go_comes_back)
{
	char command[512];
	struct job j;

	(void)snprintf(command, sizeof(command), "echo up; %s; exit 5", gate_shut(w));
	job_start(w, &j, command);
	job_says(w, &j, "up");
	/* The shim lets go of whoever talks nonsense. */
	assert_int_equal(send(j.task->sock, "nonsense", 8, MSG_NOSIGNAL), 8);
	gate_open(w);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 5);
}
