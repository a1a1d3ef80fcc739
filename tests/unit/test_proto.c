/* SPDX-License-Identifier: MIT */
/* Version 1 of what shim and host agree on: records, packets, the spec. */
#include "check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "shim/proto.h"
#include "shim/shim.h"

static struct proto_record sample(void)
{
	return (struct proto_record){
		.seq = 2,
		.state = PROTO_ENDED,
		.cause = PROTO_CAUSE_KILL,
		.pid = 4711,
		.wait_status = 9,
		.ended_ms = 1700000000123,
		.bytes_seen = 1ull << 40,
		.left_uid = -1,
		.signals = 1 << 8,
		.boot_id = {1, 2, 3},
		.why = "because",
		.memory_hit = 64 << 20,
		.processes_hit = 50,
	};
}

TEST(a_record_comes_back_as_it_went)
{
	struct proto_record r = sample(), got;
	uint8_t bytes[PROTO_RECORD_SIZE];

	proto_put_record(bytes, &r);
	assert_int_equal(proto_get_record(bytes, sizeof(bytes), &got), 0);
	assert_memory_equal(&got, &r, sizeof(r));
}

TEST(a_record_has_its_numbers_where_version_one_has_them)
{
	struct proto_record r = sample();
	uint8_t b[PROTO_RECORD_SIZE];

	proto_put_record(b, &r);
	assert_memory_equal(b, "ERRS\1\0\0\2", 8);
	assert_memory_equal(b + 8, "\2\0\0\0\0\0\0\0", 8); /* seq */
	assert_memory_equal(b + 16, "\3\0\0\0\3\0\0\0\0\0\0\0",
			    12);                                /* state, cause, flags */
	assert_memory_equal(b + 32, "\x67\x12\0\0\t\0\0\0", 8); /* pid, wait status */
	assert_memory_equal(b + 152, "\0\1\0\0\0\0\0\0", 8);    /* signals */
	assert_memory_equal(b + 160, "\1\2\3\0", 4);            /* boot id */
	assert_memory_equal(b + 176, "because", 8);             /* why */
}

TEST(what_came_later_stands_where_version_one_has_nothing)
{
	struct proto_record r = sample(), got;
	uint8_t b[PROTO_RECORD_SIZE];

	proto_put_record(b, &r);
	assert_memory_equal(b + 376, "\0\0\0\4\0\0\0\0\x32\0\0\0\0\0\0\0", 16);
	r.memory_hit = r.processes_hit = 0;
	proto_put_record(b, &r);
	for (size_t i = 376; i < PROTO_RECORD_SIZE - 8; i++)
		assert_int_equal(b[i], 0);
	assert_int_equal(proto_get_record(b, sizeof(b), &got), 0);
	assert_int_equal(got.memory_hit, 0);
	assert_int_equal(got.processes_hit, 0);
}

TEST(a_spoiled_bit_anywhere_is_noticed)
{
	struct proto_record r = sample(), got;
	uint8_t bytes[PROTO_RECORD_SIZE];

	for (size_t bit = 0; bit < PROTO_RECORD_SIZE * 8; bit++) {
		proto_put_record(bytes, &r);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(proto_get_record(bytes, sizeof(bytes), &got), -ERR_FORMAT);
	}
}

static int open_temporary(void)
{
	int fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

TEST(the_newer_of_two_records_counts)
{
	struct proto_record r = sample(), got;
	autoclose int fd = open_temporary();

	assert_int_equal(proto_read_status(fd, &got), -ERR_NOT_FOUND);
	for (uint64_t i = 3; i < 8; i++) {
		assert_int_equal(proto_write_status(fd, &r), 0);
		assert_int_equal(r.seq, i);
		assert_int_equal(proto_read_status(fd, &got), 0);
		assert_int_equal(got.seq, i);
	}
}

TEST(a_torn_record_does_not_hide_the_older_one)
{
	struct proto_record r = sample(), got;
	autoclose int fd = open_temporary();

	assert_int_equal(proto_write_status(fd, &r), 0);
	r.pid = 4712;
	assert_int_equal(proto_write_status(fd, &r), 0);
	/* The newer one lies in the first page; half of it is lost. */
	for (int len = 0; len < PROTO_RECORD_SIZE; len += 100) {
		uint8_t nothing[PROTO_RECORD_SIZE] = {0};

		assert_true(pwrite(fd, nothing, (size_t)(PROTO_RECORD_SIZE - len), len) >
			    0);
		assert_int_equal(proto_read_status(fd, &got), 0);
		assert_int_equal(got.pid, 4711);
	}
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(proto_read_status(fd, &got), -ERR_NOT_FOUND);
}

TEST(packets_come_back_as_they_went)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	struct proto_packet p = {
		.type = PROTO_MSG_HELLO,
		.hello = {.shim_pid = 7, .pid = 8, .ticks = 9, .state = 2}};
	struct proto_packet got;
	size_t len = proto_put_packet(bytes, &p);

	assert_memory_equal(bytes, "ERRP\1\0\1\0\x14\0\0\0\7\0\0\0\b\0\0\0\t", 21);
	assert_int_equal(proto_get_packet(bytes, len, &got), 0);
	assert_int_equal(got.hello.ticks, 9);
	p = (struct proto_packet){.type = PROTO_MSG_ENDED, .ended = sample()};
	len = proto_put_packet(bytes, &p);
	assert_int_equal(proto_get_packet(bytes, len, &got), 0);
	assert_memory_equal(&got.ended, &p.ended, sizeof(p.ended));
}

TEST(requests_come_back_as_they_went)
{
	static const uint8_t text[] = "abc";
	uint8_t bytes[PROTO_PACKET_MAX];
	struct proto_packet p = {.type = PROTO_MSG_INPUT,
				 .request = {.serial = 7,
					     .flags = PROTO_INPUT_CLOSE,
					     .value = -2,
					     .len = 3,
					     .bytes = text}};
	struct proto_packet got;
	size_t len = proto_put_packet(bytes, &p);

	assert_int_equal(len, PROTO_HEADER_SIZE + PROTO_REQUEST_SIZE + 3);
	assert_memory_equal(bytes,
			    "ERRP\1\0\5\0\x13\0\0\0\7\0\0\0\1\0\0\0"
			    "\xfe\xff\xff\xff\xff\xff\xff\xff"
			    "abc",
			    len);
	assert_int_equal(proto_get_packet(bytes, len, &got), 0);
	assert_int_equal(got.request.serial, 7);
	assert_int_equal(got.request.flags, PROTO_INPUT_CLOSE);
	assert_int_equal(got.request.value, -2);
	assert_int_equal(got.request.len, 3);
	assert_memory_equal(got.request.bytes, "abc", 3);
}

TEST(a_reply_comes_back_as_it_went)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	struct proto_packet p = {.type = PROTO_MSG_REPLY,
				 .reply = {.serial = 1,
					   .result = PROTO_STDIN_FULL,
					   .taken = 2,
					   .found = 3,
					   .attached = 4,
					   .detached = 5,
					   .n_listed = PROTO_LIST_MAX}};
	struct proto_packet got;

	for (int i = 0; i < PROTO_LIST_MAX; i++)
		p.reply.listed[i] = (struct proto_process){
			.pid = i + 1, .ticks = 1000 - (unsigned)i, .is_detached = i % 2};
	assert_int_equal(proto_get_packet(bytes, proto_put_packet(bytes, &p), &got), 0);
	assert_memory_equal(&got.reply, &p.reply, sizeof(p.reply));
}

TEST(a_packet_of_a_wrong_length_is_refused_and_a_new_kind_is_not)
{
	uint8_t bytes[PROTO_PACKET_MAX] = "ERRP\1\0\2\0\x10";
	struct proto_packet got;

	for (size_t len = 0; len < 28; len++)
		assert_int_equal(proto_get_packet(bytes, len, &got), -ERR_FORMAT);
	assert_int_equal(proto_get_packet(bytes, 28, &got), 0);
	assert_int_equal(proto_get_packet(bytes, 29, &got), -ERR_FORMAT);
	bytes[8] = 0x11; /* a kill has nothing behind its numbers */
	assert_int_equal(proto_get_packet(bytes, 29, &got), -ERR_FORMAT);
	bytes[6] = PROTO_MSG_INPUT;
	assert_int_equal(proto_get_packet(bytes, 29, &got), 0);
	bytes[6] = PROTO_MSG_REPLY; /* less than its numbers */
	assert_int_equal(proto_get_packet(bytes, 29, &got), -ERR_FORMAT);
	bytes[6] = 99;
	assert_int_equal(proto_get_packet(bytes, 29, &got), 0);
	assert_int_equal(got.type, 99);
	assert_false(proto_is_request(99) || proto_is_request(0));
	bytes[4] = 2;
	assert_int_equal(proto_get_packet(bytes, 29, &got), -ERR_FORMAT);
}

/* ---- the spec ---- */

static void put_sample_spec(struct buf *out)
{
	static char echo[] = "echo", hi[] = "", path[] = "PATH=/bin";
	char *argv[] = {echo, hi, NULL}, *env[] = {path, NULL};
	struct proto_spec s = {
		.uid = "0123456789abcdef0123456789abcdef",
		.flags = PROTO_SPEC_STDIN,
		.umask = 027,
		.deadline_ms = 5,
		.grace_ms = 3000,
		.log_head = 1,
		.log_tail = 2,
		.cwd = "/tmp",
		.argv = argv,
		.env = env,
		.argc = 2,
		.envc = 1,
		.limits = {{7, 1024, UINT64_MAX}},
		.n_limits = 1,
	};

	assert_int_equal(proto_put_spec(out, &s), 0);
}

TEST(a_spec_comes_back_as_it_went)
{
	autobuf struct buf b = BUF_INIT(MAX_SPEC);
	struct proto_spec got;

	put_sample_spec(&b);
	assert_int_equal(proto_get_spec(b.data, b.len, &got), 0);
	assert_string_equal(got.uid, "0123456789abcdef0123456789abcdef");
	assert_string_equal(got.cwd, "/tmp");
	assert_int_equal(got.flags, PROTO_SPEC_STDIN);
	assert_int_equal(got.umask, 027);
	assert_int_equal(got.grace_ms, 3000);
	assert_string_equal(got.argv[0], "echo");
	assert_string_equal(got.argv[1], "");
	assert_null(got.argv[2]);
	assert_string_equal(got.env[0], "PATH=/bin");
	assert_null(got.env[1]);
	assert_int_equal(got.n_limits, 1);
	assert_int_equal(got.limits[0].resource, 7);
	assert_int_equal(got.limits[0].soft, 1024);
	assert_int_equal(got.limits[0].hard, UINT64_MAX);
	mem_free(NULL, got.argv);
}

TEST(a_spec_that_is_cut_or_spoiled_is_refused)
{
	autobuf struct buf b = BUF_INIT(MAX_SPEC);
	struct proto_spec got;

	put_sample_spec(&b);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(proto_get_spec(b.data, len, &got), -ERR_FORMAT);
	b.data[b.len - 3] = 0; /* a NUL inside a variable */
	assert_int_equal(proto_get_spec(b.data, b.len, &got), -ERR_FORMAT);
	buf_clear(&b);
	put_sample_spec(&b);
	b.data[8] = '.'; /* a uid that could leave its folder */
	assert_int_equal(proto_get_spec(b.data, b.len, &got), -ERR_FORMAT);
	buf_clear(&b);
	put_sample_spec(&b);
	b.data[6] = 2; /* a flag of a later version: the task would run without it */
	assert_int_equal(proto_get_spec(b.data, b.len, &got), -ERR_FORMAT);
}

TEST(every_state_has_a_step_for_every_event)
{
	for (int st = 0; st < N_STATES; st++)
		for (int ev = 0; ev < N_EVENTS; ev++)
			assert_true(shim_knows((enum state)st, (enum event)ev));
}
