/* SPDX-License-Identifier: MIT */
/*
 * Version 1 of wire and run folder is frozen: the recorded bytes are what this code writes,
 * and what it understands. A difference here is not to be recorded anew: shims outlive the
 * errand that started them.
 */
#include "hosts.h"

#include "base/limits.h"
#include "base/mem.h"

static char golden[PROTO_STATUS_SIZE + 1];

static size_t load(const char *name)
{
	char path[4096];
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", GOLDEN, name);
	n = read_text(path, golden, sizeof(golden));
	assert_true(n > 0);
	return n;
}

static void expect_bytes(const char *name, const void *bytes, size_t len)
{
	assert_int_equal(load(name), len);
	assert_memory_equal(golden, bytes, len);
}

/* Each field with a value of its own, so that no two can change places. */
static struct proto_record sample_record(void)
{
	struct proto_record r = {
		.seq = 0x0102030405060708,
		.state = PROTO_ENDED,
		.cause = PROTO_CAUSE_DEADLINE,
		.flags = PROTO_ATTACHED_LEFT | PROTO_LOG_CUT_SHORT,
		.shim_pid = 1001,
		.pid = 1002,
		.wait_status = 0x0f00,
		.shim_ticks = 100003,
		.ticks = 100004,
		.deadline_ms = 60005,
		.started_ms = 1700000000006,
		.ended_ms = 1700000000007,
		.took_ms = 8,
		.bytes_seen = 1ull << 40 | 9,
		.bytes_kept = 1ull << 33 | 10,
		.bytes_dropped = 1ull << 34 | 11,
		.cpu_us = 1012,
		.peak_kib = 1013,
		.log_errno = 28,
		.processes_left = 15,
		.left_pid = 1016,
		.left_uid = 1017,
		.detached_left = 18,
		.detached_pid = 1019,
		.signals = 1ull << 63 | 20,
		.boot_id = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9,
			    0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf},
		.why = "cannot change to '/gr\xc3\xbcn'",
	};

	return r;
}

static void check_record(const struct proto_record *r)
{
	struct proto_record want = sample_record();

	assert_memory_equal(r, &want, sizeof(want));
}

static void check_packet(const char *name, const struct proto_packet *p)
{
	uint8_t bytes[PROTO_PACKET_MAX];

	expect_bytes(name, bytes, proto_put_packet(bytes, p));
}

static struct proto_packet loaded_packet(const char *name)
{
	struct proto_packet p;
	size_t len = load(name);

	assert_int_equal(proto_get_packet((const uint8_t *)golden, len, &p), 0);
	return p;
}

TEST(hello_is_as_it_was)
{
	struct proto_packet p = {
		.type = PROTO_MSG_HELLO,
		.hello = {.shim_pid = 1001, .pid = 1002, .ticks = 100004, .state = 2}};

	check_packet("hello", &p);
	p = loaded_packet("hello");
	assert_int_equal(p.type, 1);
	assert_int_equal(p.hello.shim_pid, 1001);
	assert_int_equal(p.hello.pid, 1002);
	assert_int_equal(p.hello.ticks, 100004);
	assert_int_equal(p.hello.state, 2);
}

/* Each request, with the numbers that a host gives it. */
static const struct {
	const char *name;
	struct proto_packet packet;
} requests[] = {
	{"kill", {.type = 2, .request = {.serial = 101}}},
	{"kill-discard", {.type = 2, .request = {.serial = 102, .flags = 1}}},
	{"signal-tree", {.type = 4, .request = {.serial = 103, .flags = 1, .value = 15}}},
	{"input-close",
	 {.type = 5,
	  .request = {.serial = 104,
		      .flags = 1,
		      .len = 6,
		      .bytes = (const uint8_t *)"gr\xc3\xbcn"}}},
	{"resize", {.type = 6, .request = {.serial = 105, .value = 24 | 80 << 16}}},
	{"sweep-all", {.type = 7, .request = {.serial = 106, .flags = 1}}},
	{"extend", {.type = 8, .request = {.serial = 107, .value = 1ll << 40 | 7}}},
	{"list", {.type = 9, .request = {.serial = 108}}},
};

TEST(requests_are_as_they_were)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const struct proto_request *want = &requests[i].packet.request;
		struct proto_packet p;

		check_packet(requests[i].name, &requests[i].packet);
		p = loaded_packet(requests[i].name);
		assert_int_equal(p.type, requests[i].packet.type);
		assert_int_equal(p.request.serial, want->serial);
		assert_int_equal(p.request.flags, want->flags);
		assert_int_equal(p.request.value, want->value);
		assert_int_equal(p.request.len, want->len);
		if (want->len)
			assert_memory_equal(p.request.bytes, want->bytes, want->len);
	}
}

TEST(a_reply_is_as_it_was)
{
	struct proto_packet want = {.type = PROTO_MSG_REPLY,
				    .reply = {.serial = 109,
					      .result = PROTO_NOT_COUNTED,
					      .taken = 110,
					      .found = 111,
					      .attached = 112,
					      .detached = 113,
					      .n_listed = 2,
					      .listed = {{1114, 0, 115}, {1116, 1, 117}}}};
	struct proto_packet p;

	check_packet("reply", &want);
	p = loaded_packet("reply");
	assert_int_equal(p.type, 10);
	assert_int_equal(p.reply.result, 11);
	assert_memory_equal(&p.reply, &want.reply, sizeof(want.reply));
}

TEST(ended_is_as_it_was)
{
	struct proto_packet p = {.type = PROTO_MSG_ENDED, .ended = sample_record()};

	check_packet("ended", &p);
	p = loaded_packet("ended");
	assert_int_equal(p.type, 3);
	check_record(&p.ended);
}

TEST(a_status_file_is_as_it_was)
{
	struct proto_record r = sample_record();
	char bytes[PROTO_STATUS_SIZE];
	int fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	r.seq -= 2;
	assert_int_equal(proto_write_status(fd, &r), 0);
	assert_int_equal(proto_write_status(fd, &r), 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0),
			 PROTO_SLOT_DISTANCE + PROTO_RECORD_SIZE);
	expect_bytes("status", bytes, PROTO_SLOT_DISTANCE + PROTO_RECORD_SIZE);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, golden, PROTO_SLOT_DISTANCE + PROTO_RECORD_SIZE, 0),
			 PROTO_SLOT_DISTANCE + PROTO_RECORD_SIZE);
	assert_int_equal(proto_read_status(fd, &r), 0);
	check_record(&r);
	(void)close(fd);
}

#define UID "0123456789abcdef0123456789abcdef"

TEST(a_spec_is_as_it_was)
{
	static char sh[] = "sh", c[] = "-c", command[] = "echo golden $A; umask; exit 5";
	static char path[] = "PATH=/bin:/usr/bin", a[] = "A=b";
	char *argv[] = {sh, c, command, NULL}, *env[] = {path, a, NULL};
	struct proto_spec s = {
		.uid = UID,
		.boot_id = {0xb0, 0xb1, 0xb2},
		.umask = 027,
		.oom_score_adj = 100,
		.deadline_ms = 60001,
		.grace_ms = 3002,
		.log_head = 1003,
		.log_tail = 200004,
		.cwd = "/",
		.argv = argv,
		.env = env,
		.argc = 3,
		.envc = 2,
		.limits = {{4, 0, UINT64_MAX}}, /* RLIMIT_CORE */
		.n_limits = 1,
	};
	autobuf struct buf b = BUF_INIT(MAX_SPEC);

	assert_int_equal(proto_put_spec(&b, &s), 0);
	expect_bytes("spec", b.data, b.len);
	buf_clear(&b);
	s.flags = PROTO_SPEC_STDIN;
	assert_int_equal(proto_put_spec(&b, &s), 0);
	expect_bytes("spec-stdin", b.data, b.len);
}

/* ---- replayed ---- */

static void put_into_folder(const struct world *w, const char *name)
{
	char path[256];
	size_t len = load(name);
	int fd;

	(void)snprintf(path, sizeof(path), "%s/tasks/" UID, w->folder);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof(path), "%s/tasks/" UID "/%s", w->folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, golden, len), len);
	(void)close(fd);
}

static void attach(struct world *w, struct job *j)
{
	*j = (struct job){0};
	assert_int_equal(run_attach(w->run, UID, job_ended, j, &j->task, NULL), 0);
}

TASK_TEST(a_shim_of_today_runs_a_spec_of_version_one)
{
	struct job j;

	put_into_folder(w, PROTO_SPEC);
	assert_int_equal(late_shim(w), 0);
	attach(w, &j);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 5);
	assert_string_equal(job_log(&j), "golden b\n0027\n");
}

TASK_TEST(a_host_of_today_imports_a_record_of_version_one)
{
	struct job j;

	put_into_folder(w, PROTO_STATUS);
	attach(w, &j);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_DEADLINE);
	assert_int_equal(j.end.deadline_ms, 60005);
	assert_int_equal(j.end.processes_left, 15);
	assert_int_equal(j.end.left_pid, 1016);
	assert_int_equal(j.end.detached_left, 18);
	assert_int_equal(j.end.bytes_dropped, 1ull << 34 | 11);
	assert_int_equal(j.end.ended_ms, 1700000000007);
	assert_string_equal(j.end.why, "cannot change to '/gr\xc3\xbcn'");
}

/* The next packet at @fd, which is of @type. */
static struct proto_packet next_packet(struct world *w, int fd, uint32_t type)
{
	struct proto_packet p = {0};

	wait_until(w, get_packet(fd, &p));
	assert_int_equal(p.type, type);
	return p;
}

TASK_TEST(a_shim_of_today_obeys_a_kill_of_version_one)
{
	struct proto_packet p;
	int fd = -1;

	assert_int_equal(host_that_dies(w->folder, "exec sleep 60", kill_self), SIGKILL);
	wait_until(w, (fd = connect_to(only_folder(w))) >= 0);
	(void)next_packet(w, fd, PROTO_MSG_HELLO);
	assert_int_equal(send(fd, golden, load("kill-discard"), MSG_NOSIGNAL), 28);
	p = next_packet(w, fd, PROTO_MSG_REPLY);
	assert_int_equal(p.reply.serial, 102);
	assert_int_equal(p.reply.result, PROTO_DONE);
	(void)next_packet(w, fd, PROTO_MSG_ENDED);
	wait_until(w, only_folder(w)[0] == 0);
	(void)close(fd);
}
