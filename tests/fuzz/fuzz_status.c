/* SPDX-License-Identifier: MIT */
/*
 * fuzz_status.c - a status file holds whole records or none.
 *
 * As it is, the input is a file. Its bytes are also taken as a record's members, so that
 * the checksum does not keep everything out.
 */
#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "shim/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const uint8_t *data, size_t size)
{
	autoclose int fd = memfd_create("status", MFD_CLOEXEC);
	struct proto_record r = {0}, again;

	assert(fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	if (proto_read_status(fd, &r) != 0)
		return;
	assert(strnlen(r.why, sizeof(r.why)) < sizeof(r.why));
	assert(proto_write_status(fd, &r) == 0);
	assert(proto_read_status(fd, &again) == 0);
	assert(r.seq == 0 || again.seq == r.seq);
}

static void check_members(const uint8_t *data, size_t size)
{
	uint8_t bytes[PROTO_RECORD_SIZE];
	struct proto_record r = {0}, again;

	memcpy(&r, data, size < sizeof(r) ? size : sizeof(r));
	proto_put_record(bytes, &r);
	assert(proto_get_record(bytes, sizeof(bytes), &again) == 0);
	assert(again.seq == r.seq && again.left_uid == r.left_uid);
	assert(strncmp(again.why, r.why, sizeof(r.why) - 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_file(data, size);
	check_members(data, size);
	return 0;
}
