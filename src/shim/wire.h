/* SPDX-License-Identifier: MIT */
/* wire.h - numbers as they stand in files and packets: little-endian, packed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint8_t *wire_put(uint8_t *at, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*at++ = (uint8_t)(v >> (8 * i));
	return at;
}

static inline uint64_t wire_get(const uint8_t **at, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t) * (*at)++ << (8 * i);
	return v;
}
