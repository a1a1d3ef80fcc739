/* SPDX-License-Identifier: MIT */
/* fuzz_packet.c - what comes through a shim's socket is a packet, or is refused. */
#include <assert.h>

#include "shim/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t once[PROTO_PACKET_MAX], twice[PROTO_PACKET_MAX];
	struct proto_packet p;

	if (proto_get_packet(data, size, &p) != 0 || p.type == 0 ||
	    p.type > PROTO_MSG_REPLY)
		return 0;
	assert(proto_put_packet(once, &p) == size);
	assert(proto_get_packet(once, size, &p) == 0);
	assert(proto_put_packet(twice, &p) == size);
	assert(memcmp(once, twice, size) == 0);
	return 0;
}
