/* SPDX-License-Identifier: MIT */
/* Host and shim: what each leaves behind, and what happens when one of them dies. */
#include <sys/resource.h>

#include "hosts.h"

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

static mode_t mode_of(const char *folder, const char *name)
{
	char path[4200];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static bool exists(const char *folder, const char *name)
{
	char path[4200];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return lstat(path, &st) == 0;
}

static long shim_of(struct job *j)
{
	return strtol(job_log(j), NULL, 10);
}

/* A task whose first line is the pid of its shim. */
static void start_telling_shim(struct world *w, struct job *j, const char *command)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "echo $PPID; %s", command);
	job_start(w, j, text);
	job_says(w, j, "\n");
}

/* ---- what a task sees ---- */

TASK_TEST(a_task_has_no_descriptor_but_its_three)
{
	struct job j;

	job_run(w, &j, "cd /proc/self/fd; echo *; readlink 0");
	/* bash itself opens none while it expands; 3 would be the directory it reads. */
	assert_true(log_has(&j, "0 1 2"));
	assert_false(log_has(&j, " 4"));
	assert_true(log_has(&j, "/dev/null"));
}

TASK_TEST(a_task_inherits_no_mask_and_no_ignored_signal)
{
	struct job j;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	job_run(w, &j, "exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	assert_string_equal(job_log(&j),
			    "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TASK_TEST(a_task_has_its_clients_umask_and_its_own_session)
{
	struct job j;

	w->context.umask = 027;
	job_run(w, &j, "umask; ps -o sid= -p $$ | grep -qw $$ && echo own");
	assert_string_equal(job_log(&j), "0027\nown\n");
}

TASK_TEST(a_task_has_its_clients_limits_and_not_its_hosts)
{
	struct rlimit limits[RLIM_NLIMITS], mine;
	struct job j;

	for (int i = 0; i < RLIM_NLIMITS; i++)
		assert_int_equal(getrlimit(i, &limits[i]), 0);
	limits[RLIMIT_NOFILE].rlim_cur = 77;
	limits[RLIMIT_CORE].rlim_cur = 0;
	w->context.limits = limits;
	w->context.n_limits = RLIM_NLIMITS;
	job_run(w, &j, "ulimit -Sn; ulimit -Hn; ulimit -Sc");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &mine), 0);
	assert_true(mine.rlim_cur != 77);
	assert_true(strncmp(job_log(&j), "77\n", 3) == 0);
	assert_int_equal(strtoull(job_log(&j) + 3, NULL, 10), mine.rlim_max);
	assert_non_null(strstr(job_log(&j) + 3, "\n0\n"));
}

TASK_TEST(a_task_is_the_better_victim_when_memory_runs_out)
{
	struct job j;

	job_run(w, &j, "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj");
	assert_true(strtol(job_log(&j), NULL, 10) >= 100);
}

TASK_TEST(an_inner_task_knows_only_itself)
{
	const char *argv[] = {"env", NULL};
	const char *env[] = {"PATH=/bin:/usr/bin", "ERRAND_TASK=outer", "A=b", NULL};
	struct run_spec spec = spec_of(w, argv);
	const char *log, *own;
	struct job j;

	w->context.env = env;
	job_start_spec(w, &j, &spec);
	job_wait(w, &j);
	log = job_log(&j);
	own = strstr(log, "ERRAND_TASK=");
	assert_non_null(own);
	assert_int_equal(strspn(own + 12, "0123456789abcdef"), PROTO_UID_LEN);
	assert_null(strstr(own + 12, "ERRAND_TASK="));
	assert_non_null(strstr(log, "A=b\n"));
}

/* ---- what others see ---- */

TASK_TEST(nothing_of_a_task_shows_in_a_list_of_processes)
{
	const char *env[] = {"PATH=/bin:/usr/bin", "TOKEN_X=abc123secret", NULL};
	char path[64], text[4096];
	struct job j;
	size_t n;

	w->context.env = env;
	start_telling_shim(w, &j, "exec sleep 60");
	(void)snprintf(path, sizeof(path), "/proc/%ld/cmdline", shim_of(&j));
	n = read_text(path, text, sizeof(text));
	assert_int_equal(n, sizeof("errand-shim"));
	assert_string_equal(text, "errand-shim");
	(void)snprintf(path, sizeof(path), "/proc/%ld/environ", shim_of(&j));
	assert_int_equal(read_text(path, text, sizeof(text)), 0);
	assert_int_equal(count_lines("abc123secret", false), 0);
	assert_false(exists(only_folder(w), PROTO_SPEC));
	run_kill(j.task);
	job_wait(w, &j);
}

TASK_TEST(a_run_folder_is_private)
{
	struct job j;

	start_telling_shim(w, &j, "exec sleep 60");
	wait_until(w, exists(only_folder(w), PROTO_SOCK));
	assert_int_equal(mode_of(only_folder(w), "."), 0700);
	assert_int_equal(mode_of(only_folder(w), PROTO_OUT), 0600);
	assert_int_equal(mode_of(only_folder(w), PROTO_STATUS), 0600);
	assert_int_equal(mode_of(only_folder(w), PROTO_LOCK), 0600);
	assert_int_equal(mode_of(w->folder, "tasks"), 0700);
	run_kill(j.task);
	job_wait(w, &j);
}

TASK_TEST(a_shim_goes_when_its_task_is_over)
{
	struct job j;

	job_run(w, &j, "echo $PPID");
	wait_until(w, !is_alive(shim_of(&j)));
	wait_until(w, !exists(only_folder(w), PROTO_SOCK));
}

/* Many at once: their records share the disk's turns. */
static void run_some(struct world *w, struct job *jobs, int count)
{
	const char *argv[] = {"true", NULL};
	struct run_spec spec = spec_of(w, argv);

	for (int i = 0; i < count; i++)
		job_start_spec(w, &jobs[i], &spec);
	for (int i = 0; i < count; i++) {
		job_wait(w, &jobs[i]);
		assert_int_equal(jobs[i].end.wait_status, 0);
		run_drop(jobs[i].task);
	}
	run_flush(w->run);
}

TASK_TEST(five_hundred_tasks_leave_no_descriptor_no_zombie_no_folder)
{
	char text[8192], path[64];
	int before = count_fds();
	struct job jobs[25];

	for (int i = 0; i < 500; i += 25)
		run_some(w, jobs, 25);
	assert_int_equal(count_fds(), before);
	assert_string_equal(only_folder(w), "");
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	wait_until(w, read_text(path, text, sizeof(text)) == 0);
}

/* ---- the host goes ---- */

TASK_TEST(a_task_outlives_its_host_and_its_record_is_complete)
{
	struct proto_record r;
	char path[4200], text[64];

	assert_int_equal(
		host_that_dies(w->folder, "sleep 0.4; echo fin; exit 6", kill_self),
		SIGKILL);
	wait_until(w, has_ended(only_folder(w), &r));
	assert_int_equal(r.cause, PROTO_CAUSE_EXIT);
	assert_int_equal(WEXITSTATUS(r.wait_status), 6);
	assert_int_equal(r.bytes_seen, 4);
	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_OUT);
	assert_int_equal(read_text(path, text, sizeof(text)), 4);
	wait_until(w, !is_alive(r.shim_pid));
}

TASK_TEST(another_host_finds_the_task_at_its_socket)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	struct proto_packet p = {.type = PROTO_MSG_KILL};
	int fd = -1;

	(void)host_that_dies(w->folder, "exec sleep 60", kill_self);
	wait_until(w, (fd = connect_to(only_folder(w))) >= 0);
	wait_until(w, get_packet(fd, &p));
	assert_int_equal(p.type, PROTO_MSG_HELLO);
	assert_int_equal(p.hello.state, PROTO_RUNNING);
	assert_true(is_alive(p.hello.pid) && is_alive(p.hello.shim_pid));
	p = (struct proto_packet){.type = PROTO_MSG_KILL};
	assert_true(send(fd, bytes, proto_put_packet(bytes, &p), MSG_NOSIGNAL) > 0);
	wait_until(w, get_packet(fd, &p));
	assert_int_equal(p.type, PROTO_MSG_REPLY);
	wait_until(w, get_packet(fd, &p));
	assert_int_equal(p.type, PROTO_MSG_ENDED);
	assert_int_equal(p.ended.cause, PROTO_CAUSE_KILL);
	(void)close(fd);
}

TASK_TEST(nonsense_at_its_socket_hurts_nobody)
{
	char command[512];
	struct job j;
	int fd = -1;

	(void)snprintf(command, sizeof(command), "%s; exit 8", gate_shut(w));
	start_telling_shim(w, &j, command);
	wait_until(w, (fd = connect_to(only_folder(w))) >= 0);
	assert_int_equal(send(fd, "nonsense", 8, MSG_NOSIGNAL), 8);
	(void)close(fd);
	for (int i = 0; i < 20; i++) {
		fd = connect_to(only_folder(w));
		if (fd >= 0)
			(void)close(fd);
	}
	gate_open(w);
	job_wait(w, &j);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 8);
}

TASK_TEST(a_host_that_leaves_takes_tasks_and_folders_along)
{
	const char *sleep = own_sleep();

	assert_int_equal(host_that_dies(w->folder, sleep, leave), 0);
	wait_until(w, only_folder(w)[0] == 0);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_host_that_has_left_only_forgets)
{
	char folder[4096];
	struct job j;

	job_run(w, &j, "echo $PPID");
	wait_until(w, !is_alive(shim_of(&j)));
	(void)snprintf(folder, sizeof(folder), "%s", only_folder(w));
	run_leave(w->run);
	/* It had time for this one; as if it had not. */
	assert_int_equal(mkdir(folder, 0700), 0);
	run_drop(j.task);
	assert_string_equal(only_folder(w), folder);
}

/* ---- the shim goes ---- */

TASK_TEST(a_killed_shim_means_lost_and_its_tree_is_swept)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	(void)snprintf(command, sizeof(command), "setsid %s & %s", sleep, sleep);
	start_telling_shim(w, &j, command);
	wait_until(w, count_alive(sleep) == 2);
	assert_int_equal(kill((pid_t)shim_of(&j), SIGKILL), 0);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_LOST);
	assert_string_equal(j.end.why, "the supervisor was killed");
	assert_int_equal(count_alive(sleep), 0);
	assert_true(log_has(&j, "\n"));
}

TASK_TEST(a_sweep_finds_who_goes_on_without_its_first_thread)
{
	struct proto_record r;
	char command[4608];
	struct job j;

	(void)snprintf(command, sizeof(command), "%s sleep 60", headless("setsid"));
	job_start(w, &j, command);
	job_says(w, &j, "\n");
	read_status(only_folder(w), &r);
	assert_int_equal(kill(r.shim_pid, SIGKILL), 0);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_LOST);
	wait_until(w, !has_process(strtol(job_log(&j), NULL, 10)));
}

TASK_TEST(a_task_that_kills_its_shim_is_lost_too)
{
	struct job j;

	job_run(w, &j, "kill -9 $PPID; sleep 60");
	assert_int_equal(j.end.cause, RUN_LOST);
}

TASK_TEST(a_folder_that_is_declared_void_starts_nothing)
{
	struct proto_record r;
	struct job j;

	job_run(w, &j, "kill -9 $PPID");
	read_status(only_folder(w), &r);
	assert_int_equal(r.state, PROTO_VOID);
}

TASK_TEST(a_shim_that_cannot_be_started_is_a_reason)
{
	const char *argv[] = {"true", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct run *r;
	struct job j = {0};

	assert_int_equal(run_new(w->folder, "/no/such/shim", &r, NULL), 0);
	assert_int_equal(run_start(r, &spec, job_ended, &j, &j.task, NULL), 0);
	run_flush(r);
	assert_int_equal(j.ends, 1);
	assert_int_equal(j.end.cause, RUN_NOT_STARTED);
	assert_string_equal(j.end.why,
			    "cannot start '/no/such/shim': No such file or directory");
	assert_string_equal(only_folder(w), "");
	run_free(r);
}

TASK_TEST(a_forgotten_live_task_runs_on)
{
	struct proto_record r;
	struct job j;

	job_start(w, &j, "sleep 0.3; exit 2");
	run_drop(j.task);
	wait_until(w, has_ended(only_folder(w), &r));
	assert_int_equal(WEXITSTATUS(r.wait_status), 2);
	assert_int_equal(j.ends, 0);
}

/* ---- a shim that cannot begin ---- */

/* From now on a run folder has a lock that nobody can open, and the shims of @w do @then. */
static void world_without_locks(struct world *w, const char *then)
{
	char path[128], text[4400];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/shim", w->folder);
	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\ncd /proc/self/fd/3 && /bin/ln -s /no/such lock; %s\n",
		       then);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	run_free(w->run);
	assert_int_equal(run_new(w->folder, path, &w->run, NULL), 0);
}

TASK_TEST(a_shim_without_a_lock_tells_its_host_why)
{
	/* The system's own words for ELOOP are those of the libc that the shim has. */
	static const char why[] = "cannot take the lock of the run folder: ";
	char then[4200];
	struct job j;

	(void)snprintf(then, sizeof(then), "exec %s", shim_path());
	world_without_locks(w, then);
	job_run(w, &j, "true");
	assert_int_equal(j.end.cause, RUN_NOT_STARTED);
	assert_memory_equal(j.end.why, why, sizeof(why) - 1);
	assert_non_null(strcasestr(j.end.why, "link"));
	assert_false(exists(only_folder(w), PROTO_SPEC));
	run_drop(j.task);
	run_flush(w->run);
	assert_string_equal(only_folder(w), "");
}

TASK_TEST(where_no_lock_can_be_had_a_task_ends_in_a_bounded_time)
{
	int64_t before = clock_mono_ms();
	struct job j;

	world_without_locks(w, "exit 1");
	job_run(w, &j, "true");
	assert_int_equal(j.end.cause, RUN_LOST);
	assert_string_equal(j.end.why, "no supervisor, and 'lock' cannot be had: Too "
				       "many levels of symbolic links");
	assert_in_range(clock_mono_ms() - before, 1900, 10000);
	assert_false(exists(only_folder(w), PROTO_SPEC));
}

TASK_TEST(where_no_lock_can_be_had_a_kill_ends_a_task_at_once)
{
	int64_t before;
	struct job j;

	world_without_locks(w, "exit 1");
	before = clock_mono_ms();
	job_start(w, &j, "true");
	wait_until(w, run_deadline(w->run) != INT64_MAX);
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_LOST);
	if (!getenv("UNTIMED")) /* under valgrind the look through /proc takes that long */
		assert_true(clock_mono_ms() - before < 1900);
}
