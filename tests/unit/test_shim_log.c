/* SPDX-License-Identifier: MIT */
/* The log: every byte counted, the front and the end kept, the disk never filled. */
#include "tasks.h"

static void job_run_capped(struct world *w, struct job *j, uint64_t head, uint64_t tail,
			   const char *command)
{
	const char *argv[] = {"bash", "-c", command, NULL};
	struct run_spec spec = spec_of(w, argv);

	spec.log_head = head;
	spec.log_tail = tail;
	job_start_spec(w, j, &spec);
	job_wait(w, j);
}

/* Bytes of all log files, and how many there are. */
static uint64_t on_disk(const char *folder, int *ret_files)
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	struct stat st;
	uint64_t sum = 0;

	assert_non_null(dir);
	*ret_files = 0;
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, PROTO_OUT, strlen(PROTO_OUT)) != 0)
			continue;
		assert_int_equal(fstatat(dirfd(dir), e->d_name, &st, 0), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		sum += (uint64_t)st.st_size;
		++*ret_files;
	}
	(void)closedir(dir);
	return sum;
}

TASK_TEST(one_byte_more_than_the_pipe_holds_arrives)
{
	const char *text;
	struct job j;

	job_run(w, &j, "head -c 65537 /dev/zero | tr '\\0' a; exit 0");
	assert_int_equal(j.end.bytes_seen, 65537);
	text = job_log(&j);
	assert_int_equal(strspn(text, "a"), 65537);
	assert_int_equal(strlen(text), 65537);
	assert_non_null(run_log_path(j.task));
}

TASK_TEST(stdout_and_stderr_stay_in_order)
{
	struct job j;

	job_run(w, &j, "for i in 1 2 3; do echo out$i; echo err$i >&2; done");
	assert_string_equal(job_log(&j), "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
}

TASK_TEST(a_flood_leaves_at_most_the_caps_and_exact_counts)
{
	uint64_t head = 100000, tail = 1 << 20, size;
	struct proto_record r;
	struct job j;
	int files;

	job_run_capped(w, &j, head, tail, "head -c 30000000 /dev/zero | tr '\\0' f");
	size = on_disk(only_folder(w), &files);
	read_status(only_folder(w), &r);
	assert_true(size <= head + tail);
	assert_true(size > head + tail / 2);
	assert_true(files <= 9);
	assert_int_equal(r.bytes_seen, 30000000);
	assert_int_equal(r.bytes_kept, size);
	assert_int_equal(r.bytes_dropped, 30000000 - size);
	assert_int_equal(j.end.bytes_dropped, r.bytes_dropped);
	assert_int_equal(run_log_end(j.task), 30000000);
	assert_null(run_log_path(j.task));
}

/* Lines that tell where they stand: 16 bytes each. */
#define NUMBERED(count) "seq -f '%015.0f' 0 " #count

static void expect_numbered(const struct buf *text, uint64_t from)
{
	char want[32];

	for (size_t i = (16 - from % 16) % 16; i + 16 <= text->len; i += 16) {
		(void)snprintf(want, sizeof(want), "%015llu\n",
			       (unsigned long long)(from + i) / 16);
		assert_memory_equal(text->data + i, want, 16);
	}
}

TASK_TEST(a_reader_gets_each_range_or_is_told_where_it_goes_on)
{
	uint64_t at = 0, from, gaps = 0, got = 0;
	struct err err = {0};
	struct job j;

	job_run_capped(w, &j, 100000, 400000, NUMBERED(199999));
	while (at < run_log_end(j.task)) {
		autobuf struct buf text = BUF_INIT(33333);

		assert_int_equal(run_log_read(j.task, at, 33333, &text, &from, &err), 0);
		gaps += from - at;
		got += text.len;
		expect_numbered(&text, from);
		at = from + text.len;
	}
	assert_int_equal(at, 3200000);
	assert_int_equal(gaps, j.end.bytes_dropped);
	assert_int_equal(got + gaps, 3200000);
	assert_true(got > 100000 + 200000);
}

TASK_TEST(a_log_without_a_tail_keeps_its_front)
{
	struct job j;

	job_run_capped(w, &j, 10, 0, "echo 0123456789abcdef");
	assert_string_equal(job_log(&j), "0123456789");
	assert_int_equal(j.end.bytes_dropped, 7);
	assert_int_equal(run_log_end(j.task), 17);
}

TASK_TEST(a_log_without_a_front_keeps_its_tail)
{
	autobuf struct buf text = BUF_INIT(1 << 20);
	struct err err = {0};
	uint64_t from;
	struct job j;

	job_run_capped(w, &j, 0, 200000, NUMBERED(99999));
	assert_int_equal(run_log_read(j.task, 0, 1 << 20, &text, &from, &err), 0);
	assert_true(from > 0 && from == j.end.bytes_dropped);
	assert_int_equal(from + text.len, 1600000);
	expect_numbered(&text, from);
}

TASK_TEST(a_deleted_log_is_told_as_a_gap_and_hurts_nobody)
{
	autobuf struct buf text = BUF_INIT(1000);
	struct err err = {0};
	char path[4200];
	uint64_t from;
	struct job j;

	(void)snprintf(path, sizeof(path), "echo before; %s; echo after", gate_shut(w));
	job_start(w, &j, path);
	job_says(w, &j, "before");
	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_OUT);
	assert_int_equal(unlink(path), 0);
	gate_open(w);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(run_log_read(j.task, 0, 1000, &text, &from, &err), 0);
	assert_int_equal(text.len, 0);
	assert_int_equal(from, 13);
}

TASK_TEST(a_log_that_nobody_writes_any_more_is_not_looked_for_again)
{
	uint64_t kept;
	char path[4200];
	struct job j;

	job_run(w, &j, "echo twelve chars");
	assert_int_equal(run_log_ends(j.task, &kept), 13);
	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_OUT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(run_log_ends(j.task, &kept), 13);
	assert_int_equal(kept, 13);
}

TASK_TEST(a_live_log_can_be_read_while_it_grows)
{
	char command[512];
	struct job j;

	(void)snprintf(command, sizeof(command), "echo one; %s; echo two", gate_shut(w));
	job_start(w, &j, command);
	job_says(w, &j, "one\n");
	assert_int_equal(j.ends, 0);
	assert_int_equal(run_log_end(j.task), 4);
	gate_open(w);
	job_says(w, &j, "two\n");
	job_wait(w, &j);
	assert_string_equal(job_log(&j), "one\ntwo\n");
}

TASK_TEST(a_planted_file_is_not_written_through)
{
	const char *argv[] = {"echo", "x", NULL};
	struct run_spec spec = spec_of(w, argv);
	char victim[128], text[16];
	struct err err = {0};
	struct job j = {0};
	DIR *dir;
	int fd;

	/* Whoever may write into the folder may do anything anyway; but a link stays one. */
	(void)snprintf(victim, sizeof(victim), "%s/victim", w->folder);
	fd = open(victim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "mine", 4), 4);
	(void)close(fd);
	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, &err), 0);
	run_flush(w->run);
	dir = opendir(only_folder(w));
	assert_non_null(dir);
	(void)!symlinkat(victim, dirfd(dir), PROTO_OUT);
	job_wait(w, &j);
	(void)closedir(dir);
	(void)read_text(victim, text, sizeof(text));
	assert_string_equal(text, "mine");
}

TASK_TEST(a_discarded_log_goes_though_a_segment_of_it_failed)
{
	const char *sleep = own_sleep();
	char command[256];
	const char *argv[] = {"bash", "-c", command, NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j;

	/* The third of its segments cannot be made; the pipe does not hold what comes after. */
	(void)snprintf(command, sizeof(command),
		       "cd /proc/$PPID/cwd && : >out.131172; cd /;"
		       "head -c 200000 /dev/zero; exec %s",
		       sleep);
	spec.log_head = 100;
	spec.log_tail = 8 << 16;
	job_start_spec(w, &j, &spec);
	wait_until(w, count_alive(sleep) == 1);
	run_leave(w->run);
	wait_until(w, only_folder(w)[0] == 0);
}
