/* SPDX-License-Identifier: MIT */
/*
 * Whoever dies, at whatever step: SIGKILL to the shim, to the process that becomes the task,
 * or to the host, in front of each system call of a task's life; then at random moments.
 *
 * Each time the same must hold: a host learns of exactly one end, and it is a true one; the
 * bytes that had reached the log are there; nobody is left, and no folder, descriptor or
 * zombie. The cells of docs/crash-points.md are these tests.
 */
#include "faults.h"
#include "faulty.h"
#include "hosts.h"

/* Far more than there are in a life as short as these. */
#define STEPS_MAX 600

/* ---- one life ---- */

/* How a task's life goes, and how it may end. */
struct life {
	const char *command; /* $S is a sleep of its own */
	bool is_killed;      /* by its host, once it sleeps */
	bool is_long;
};

static const struct life by_itself = {.command = "echo hi; exit 3"};
static const struct life by_a_kill = {
	.command = "trap '' TERM; echo hi; setsid $S & $S; exit 3",
	.is_killed = true,
	.is_long = true,
};

static char command[512];
static const char *own;

static const char *command_of(const struct life *l)
{
	own = own_sleep();
	(void)snprintf(command, sizeof(command), "S='%s'; %s", own, l->command);
	return command;
}

static bool is_ready(const struct life *l, const struct job *j)
{
	return j->ends > 0 || !l->is_long || count_alive(own) == 2;
}

/* A host that died while it deleted a task that it was done with has taken the log first. */
static bool may_be_deleted;

static bool is_half_deleted(const struct world *w)
{
	char path[4200];

	if (!may_be_deleted)
		return false;
	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_OUT);
	return access(path, F_OK) != 0;
}

static void expect_log(struct world *w, struct job *j, bool is_whole)
{
	const char *log = job_log(j);

	if ((is_whole && !is_half_deleted(w)) || log[0])
		assert_string_equal(log, "hi\n");
}

static void check_end(struct world *w, const struct life *l, struct job *j)
{
	const struct run_end *e = &j->end;

	assert_int_equal(j->ends, 1);
	switch (e->cause) {
	case RUN_EXIT:
		assert_int_equal(WEXITSTATUS(e->wait_status), 3);
		assert_false(l->is_long);
		expect_log(w, j, true);
		break;
	case RUN_KILL:
		assert_true(l->is_killed);
		assert_int_equal(e->processes_left, 0);
		break;
	case RUN_SIGNAL: /* the child itself was the victim */
		assert_int_equal(WTERMSIG(e->wait_status), SIGKILL);
		break;
	case RUN_LOST:
	case RUN_NOT_STARTED:
		assert_true(e->why[0] != 0);
		expect_log(w, j, false);
		break;
	case RUN_OOM:
	case RUN_DEADLINE:
		fail_msg("there was no deadline");
	}
}

static void check_nothing_is_left(struct world *w, struct job *j)
{
	wait_until(w, is_folder_free(w));
	run_drop(j->task);
	run_flush(w->run);
	wait_until(w, only_folder(w)[0] == 0);
	assert_int_equal(count_alive(own), 0);
	assert_int_equal(j->ends, 1);
}

/* False: the life was over before the n-th step. */
static bool dies_at(struct world *w, const struct life *l, const char *who, int n)
{
	const char *argv[] = {"bash", "-c", command_of(l), NULL};
	struct run_spec spec = spec_of(w, argv);
	char fault[64];
	struct job j;

	may_be_deleted = false;
	(void)snprintf(fault, sizeof(fault), "%s %d", who, n);
	world_fault(w, fault);
	spec.grace_ms = 20;
	job_start_spec(w, &j, &spec);
	wait_until(w, is_ready(l, &j));
	if (l->is_killed)
		run_kill(j.task);
	job_wait(w, &j);
	check_end(w, l, &j);
	check_nothing_is_left(w, &j);
	return has_happened(w);
}

static void dies_at_every_step(struct world *w, const struct life *l, const char *who)
{
	int n = 1;

	while (n < STEPS_MAX && dies_at(w, l, who, n))
		n++;
	assert_in_range(n, 5, STEPS_MAX - 1);
}

TASK_TEST(a_shim_dies_at_every_step_of_a_task_that_ends_by_itself)
{
	dies_at_every_step(w, &by_itself, "kill");
}

TASK_TEST(a_shim_dies_at_every_step_of_a_task_that_is_killed)
{
	dies_at_every_step(w, &by_a_kill, "kill");
}

TASK_TEST(a_child_dies_at_every_step_between_fork_and_exec)
{
	dies_at_every_step(w, &by_itself, "kill-child");
}

/* ---- the host ---- */

static struct run *mortal_run;
static struct job mortal_job;

static void turn_until_ended(struct run *r)
{
	while (!mortal_job.ends) {
		struct pollfd p = {.fd = run_fd(r), .events = POLLIN};

		(void)poll(&p, 1, 100);
		run_turn(r, clock_mono_ms());
	}
}

/* A host's whole life, with a @fault in it. */
static pid_t start_host(const struct world *w, const struct life *l, const char *fault)
{
	const char *argv[] = {"bash", "-c", command, NULL};
	struct run_context context = {.cwd = "/tmp", .umask = 022};
	struct run_spec spec = {.argv = argv,
				.context = &context,
				.grace_ms = 20,
				.log_head = 1 << 20,
				.log_tail = 1 << 20};
	pid_t pid;

	may_be_deleted = true;
	memcpy(&context.env, &environ, sizeof(environ));
	(void)signal(SIGCHLD, SIG_DFL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		mortal_job = (struct job){0};
		(void)alarm(PATIENCE_MS / 1000);
		faults_begin(fault);
		if (run_new(w->folder, shim_path(), &mortal_run, NULL) != 0 ||
		    run_start(mortal_run, &spec, job_ended, &mortal_job, &mortal_job.task,
			      NULL) != 0)
			_exit(1);
		run_flush(mortal_run);
		if (l->is_killed)
			run_kill(mortal_job.task);
		turn_until_ended(mortal_run);
		run_drop(mortal_job.task);
		run_flush(mortal_run);
		_exit(0);
	}
	return pid;
}

static int wait_for_host(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)signal(SIGCHLD, SIG_IGN);
	return status;
}

/* One that ends in front of its @n-th call; 0 is left if it got to its end. */
static int mortal_host(const struct world *w, const struct life *l, int n)
{
	char fault[64];

	(void)snprintf(fault, sizeof(fault), "kill %d", n);
	return wait_for_host(start_host(w, l, fault));
}

/* What the next host makes of what the last one left. */
static void next_host(struct world *w, const struct life *l)
{
	char uid[PROTO_UID_LEN + 1];
	const char *folder = only_folder(w);
	struct job j = {0};

	if (!folder[0])
		return; /* it died before there was one, or after it was gone */
	(void)snprintf(uid, sizeof(uid), "%s", strrchr(folder, '/') + 1);
	assert_int_equal(run_attach(w->run, uid, job_ended, &j, &j.task, NULL), 0);
	if (l->is_killed)
		run_kill(j.task);
	job_wait(w, &j);
	if (j.end.cause == RUN_LOST)
		assert_string_equal(j.end.why, "it never ran");
	check_end(w, l, &j);
	check_nothing_is_left(w, &j);
}

static void host_dies_at_every_step(struct world *w, const struct life *l)
{
	int n = 1, status = -1;

	for (; n < STEPS_MAX && status != 0; n++) {
		(void)command_of(l);
		status = mortal_host(w, l, n);
		assert_true(status == 0 || WTERMSIG(status) == SIGKILL);
		next_host(w, l);
		wait_until(w, only_folder(w)[0] == 0);
		assert_int_equal(count_alive(own), 0);
	}
	assert_in_range(n, 10, STEPS_MAX - 1);
}

TASK_TEST(a_host_dies_at_every_step_of_a_task_that_ends_by_itself)
{
	host_dies_at_every_step(w, &by_itself);
}

TASK_TEST(a_host_dies_at_every_step_of_a_task_that_it_kills)
{
	host_dies_at_every_step(w, &by_a_kill);
}

/* ---- at random moments ---- */

enum victim {
	HOST = 1,
	SHIM = 2,
	CHILD = 4,
	VICTIMS = 8,
};

/* The pids as the record has them; 0 if it is not there yet. */
static void find_victims(const struct world *w, struct proto_record *ret)
{
	char path[4200];
	int fd;

	*ret = (struct proto_record){0};
	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_STATUS);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && proto_read_status(fd, ret) != 0)
		*ret = (struct proto_record){0};
	if (fd >= 0)
		(void)close(fd);
}

/* The record may be old by now: only who still is what it says. */
static void end_child_of(pid_t pid, pid_t parent)
{
	char path[64], line[512];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (pid <= 0 || !read_text(path, line, sizeof(line)))
		return;
	at = strrchr(line, ')');
	if (at && strtol(at + 4, NULL, 10) == parent)
		(void)kill(pid, SIGKILL);
}

static bool is_shim(pid_t pid)
{
	char path[64], line[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	return pid > 0 && read_text(path, line, sizeof(line)) &&
	       strcmp(line, "errand-shim") == 0;
}

/* Not for luck: the moment itself is what is drawn. */
static void random_pause(unsigned *seed)
{
	struct timespec t = {.tv_nsec = (long)(rand_r(seed) % 12000) * 1000};

	(void)ppoll(NULL, 0, &t, NULL);
}

static void random_round(struct world *w, unsigned seed)
{
	const struct life *l = rand_r(&seed) % 2 ? &by_itself : &by_a_kill;
	unsigned who = 1 + (unsigned)rand_r(&seed) % (VICTIMS - 1);
	struct proto_record r;
	char uid[64] = "";
	struct job j = {0};
	pid_t host;

	(void)command_of(l);
	host = start_host(w, l, NULL);
	random_pause(&seed);
	find_victims(w, &r);
	if (who & CHILD)
		end_child_of(r.pid, r.shim_pid);
	if (who & SHIM && is_shim(r.shim_pid))
		(void)kill(r.shim_pid, SIGKILL);
	if (who & HOST)
		(void)kill(host, SIGKILL);
	(void)wait_for_host(host);
	if (only_folder(w)[0])
		(void)snprintf(uid, sizeof(uid), "%s", strrchr(only_folder(w), '/') + 1);
	if (uid[0] && run_attach(w->run, uid, job_ended, &j, &j.task, NULL) == 0) {
		if (l->is_killed)
			run_kill(j.task);
		job_wait(w, &j);
		check_end(w, l, &j);
		check_nothing_is_left(w, &j);
	}
	wait_until(w, only_folder(w)[0] == 0);
	wait_until(w, count_alive(own) == 0);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

TASK_TEST(whoever_dies_at_a_random_moment_nothing_is_lost_or_left)
{
	const char *rounds = getenv("ROUNDS");
	long count = rounds ? strtol(rounds, NULL, 10) : 30;
	unsigned seed = (unsigned)clock_wall_ms();
	int before = count_fds();
	char path[64], text[4096];

	for (long i = 0; i < count; i++) {
		print_message("# seed %u\n", seed + (unsigned)i);
		random_round(w, seed + (unsigned)i);
	}
	assert_int_equal(count_fds(), before);
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	wait_until(w, read_text(path, text, sizeof(text)) == 0);
}
