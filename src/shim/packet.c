/* SPDX-License-Identifier: MIT */
/* packet.c - what goes over a shim's socket: a header of 12 bytes, and a body by its kind. */
#include <string.h>

#include "base/err.h"
#include "shim/proto.h"
#include "shim/wire.h"

#define PACKET_MAGIC 0x50525245u /* "ERRP" */

#define HELLO_SIZE 20
#define REPLY_SIZE 24
#define PROCESS_SIZE 16

_Static_assert(PROTO_HEADER_SIZE + PROTO_RECORD_SIZE <= PROTO_PACKET_MAX, "a record fits");
_Static_assert(PROTO_HEADER_SIZE + REPLY_SIZE + PROTO_LIST_MAX * PROCESS_SIZE <=
		       PROTO_PACKET_MAX,
	       "a list fits");

/* A body is @size bytes and up to @most items of @item bytes. */
struct form {
	size_t size, item, most;
};

static const struct form forms[] = {
	[PROTO_MSG_HELLO] = {HELLO_SIZE, 1, 0},
	[PROTO_MSG_KILL] = {PROTO_REQUEST_SIZE, 1, 0},
	[PROTO_MSG_ENDED] = {PROTO_RECORD_SIZE, 1, 0},
	[PROTO_MSG_SIGNAL] = {PROTO_REQUEST_SIZE, 1, 0},
	[PROTO_MSG_INPUT] = {PROTO_REQUEST_SIZE, 1, PROTO_INPUT_MAX},
	[PROTO_MSG_RESIZE] = {PROTO_REQUEST_SIZE, 1, 0},
	[PROTO_MSG_SWEEP] = {PROTO_REQUEST_SIZE, 1, 0},
	[PROTO_MSG_EXTEND] = {PROTO_REQUEST_SIZE, 1, 0},
	[PROTO_MSG_LIST] = {PROTO_REQUEST_SIZE, 1, 0},
	[PROTO_MSG_REPLY] = {REPLY_SIZE, PROCESS_SIZE, PROTO_LIST_MAX},
};

static bool is_known(uint32_t type)
{
	return type > 0 && type < sizeof(forms) / sizeof(forms[0]);
}

static bool has_form(uint32_t type, size_t body)
{
	const struct form *f = &forms[type];

	return body >= f->size && (body - f->size) % f->item == 0 &&
	       (body - f->size) / f->item <= f->most;
}

bool proto_is_request(uint32_t type)
{
	return is_known(type) && forms[type].size == PROTO_REQUEST_SIZE;
}

/* ---- writing ---- */

static uint8_t *put_hello(uint8_t *at, const struct proto_hello *h)
{
	at = wire_put(at, (uint64_t)h->shim_pid, 4);
	at = wire_put(at, (uint64_t)h->pid, 4);
	at = wire_put(at, h->ticks, 8);
	return wire_put(at, h->state, 4);
}

static uint8_t *put_request(uint8_t *at, const struct proto_request *r)
{
	at = wire_put(at, r->serial, 4);
	at = wire_put(at, r->flags, 4);
	at = wire_put(at, (uint64_t)r->value, 8);
	if (r->len)
		memcpy(at, r->bytes, r->len);
	return at + r->len;
}

static uint8_t *put_reply(uint8_t *at, const struct proto_reply *r)
{
	at = wire_put(at, r->serial, 4);
	at = wire_put(at, r->result, 4);
	at = wire_put(at, r->taken, 4);
	at = wire_put(at, r->found, 4);
	at = wire_put(at, r->attached, 4);
	at = wire_put(at, r->detached, 4);
	for (uint32_t i = 0; i < r->n_listed; i++) {
		at = wire_put(at, (uint64_t)r->listed[i].pid, 4);
		at = wire_put(at, r->listed[i].is_detached, 4);
		at = wire_put(at, r->listed[i].ticks, 8);
	}
	return at;
}

size_t proto_put_packet(uint8_t out[PROTO_PACKET_MAX], const struct proto_packet *p)
{
	uint8_t *at = out + PROTO_HEADER_SIZE;
	size_t len;

	if (p->type == PROTO_MSG_HELLO) {
		at = put_hello(at, &p->hello);
	} else if (p->type == PROTO_MSG_ENDED) {
		proto_put_record(at, &p->ended);
		at += PROTO_RECORD_SIZE;
	} else if (p->type == PROTO_MSG_REPLY) {
		at = put_reply(at, &p->reply);
	} else if (proto_is_request(p->type)) {
		at = put_request(at, &p->request);
	}
	len = (size_t)(at - out);
	at = wire_put(out, PACKET_MAGIC, 4);
	at = wire_put(at, PROTO_VERSION, 2);
	at = wire_put(at, p->type, 2);
	(void)wire_put(at, len - PROTO_HEADER_SIZE, 4);
	return len;
}

/* ---- reading ---- */

static void get_hello(const uint8_t *at, struct proto_hello *ret)
{
	ret->shim_pid = (int32_t)wire_get(&at, 4);
	ret->pid = (int32_t)wire_get(&at, 4);
	ret->ticks = wire_get(&at, 8);
	ret->state = (uint32_t)wire_get(&at, 4);
}

static void get_request(const uint8_t *at, size_t body, struct proto_request *ret)
{
	ret->serial = (uint32_t)wire_get(&at, 4);
	ret->flags = (uint32_t)wire_get(&at, 4);
	ret->value = (int64_t)wire_get(&at, 8);
	ret->len = (uint32_t)(body - PROTO_REQUEST_SIZE);
	ret->bytes = at;
}

static void get_reply(const uint8_t *at, size_t body, struct proto_reply *ret)
{
	ret->serial = (uint32_t)wire_get(&at, 4);
	ret->result = (uint32_t)wire_get(&at, 4);
	ret->taken = (uint32_t)wire_get(&at, 4);
	ret->found = (uint32_t)wire_get(&at, 4);
	ret->attached = (uint32_t)wire_get(&at, 4);
	ret->detached = (uint32_t)wire_get(&at, 4);
	ret->n_listed = (uint32_t)((body - REPLY_SIZE) / PROCESS_SIZE);
	for (uint32_t i = 0; i < ret->n_listed; i++) {
		ret->listed[i].pid = (int32_t)wire_get(&at, 4);
		ret->listed[i].is_detached = (uint32_t)wire_get(&at, 4);
		ret->listed[i].ticks = wire_get(&at, 8);
	}
}

int proto_get_packet(const uint8_t *bytes, size_t len, struct proto_packet *ret)
{
	const uint8_t *at = bytes;
	size_t body;

	if (len < PROTO_HEADER_SIZE || len > PROTO_PACKET_MAX ||
	    wire_get(&at, 4) != PACKET_MAGIC || wire_get(&at, 2) != PROTO_VERSION)
		return -ERR_FORMAT;
	memset(ret, 0, sizeof(*ret));
	ret->type = (uint32_t)wire_get(&at, 2);
	body = (size_t)wire_get(&at, 4);
	if (ret->type == 0 || body != len - PROTO_HEADER_SIZE)
		return -ERR_FORMAT;
	if (!is_known(ret->type))
		return 0;
	if (!has_form(ret->type, body))
		return -ERR_FORMAT;
	if (ret->type == PROTO_MSG_ENDED)
		return proto_get_record(at, body, &ret->ended);
	if (ret->type == PROTO_MSG_HELLO)
		get_hello(at, &ret->hello);
	else if (ret->type == PROTO_MSG_REPLY)
		get_reply(at, body, &ret->reply);
	else
		get_request(at, body, &ret->request);
	return 0;
}
