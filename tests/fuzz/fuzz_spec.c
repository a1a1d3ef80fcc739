/* SPDX-License-Identifier: MIT */
/* fuzz_spec.c - a spec that is read can be written back, byte for byte. */
#include <assert.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "shim/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autobuf struct buf again = BUF_INIT(size);
	char *copy = mem_dup(NULL, data, size);
	struct proto_spec s;

	if (proto_get_spec(copy, size, &s) == 0) {
		assert(proto_put_spec(&again, &s) == 0);
		assert(again.len == size && memcmp(again.data, data, size) == 0);
		mem_free(NULL, s.argv);
	}
	mem_free(NULL, copy);
	return 0;
}
