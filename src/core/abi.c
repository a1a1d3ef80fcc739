/* SPDX-License-Identifier: MIT */
#include "core/abi.h"

#include <stdbool.h>
#include <string.h>

#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))
#define ROW(type, last, known)                                                             \
	{                                                                                  \
#type, END_OF(struct type, last), sizeof(struct type),                     \
			offsetof(struct type, flags), known                                \
	}

/* @first is the size of the first version, named by its last member: it never changes. */
static const struct abi {
	const char *name;
	size_t first, now;
	size_t flags_at; /* 0: it has none */
	uint32_t known;  /* flags */
} structs[] = {
	[ABI_HOST_OPTIONS] = {"errand_host_options",
			      END_OF(struct errand_host_options, oom),
			      sizeof(struct errand_host_options), 0, 0},
	[ABI_AGENT_OPTIONS] = ROW(errand_agent_options, destroy,
				  ERRAND_AGENT_UNREGISTERED | ERRAND_AGENT_OPERATOR),
	[ABI_TOOL] = ROW(errand_tool, destroy, ERRAND_TOOL_EXCLUSIVE),
	[ABI_LISTENER] = ROW(errand_listener, destroy, ERRAND_PREPEND),
	[ABI_CALL_OPTIONS] = ROW(errand_call_options, destroy, ERRAND_ARGS_NOT_JSON),
	[ABI_PRODUCER] = ROW(errand_producer, destroy, 0),
	[ABI_TASK_SPEC] = {"errand_task_spec",
			   offsetof(struct errand_task_spec, producer) +
				   END_OF(struct errand_producer, destroy),
			   sizeof(struct errand_task_spec),
			   offsetof(struct errand_task_spec, flags), 0},
};

static bool is_zero(const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

static int check_flags(const struct mem *m, const struct abi *abi, const void *own,
		       errand_error **ret_err)
{
	uint32_t flags = 0;

	if (abi->flags_at)
		memcpy(&flags, (const char *)own + abi->flags_at, sizeof(flags));
	if (!(flags & ~abi->known))
		return 0;
	return error_make(ret_err, m, ERRAND_EARG,
			  "struct %s: it has flags that this version of the library does "
			  "not know (0x%x)",
			  abi->name, flags & ~abi->known);
}

int abi_take(const struct mem *m, enum abi_struct which, void *to, const void *from,
	     errand_error **ret_err)
{
	const struct abi *abi = &structs[which];
	uint32_t size;

	memset(to, 0, abi->now);
	memcpy(&size, from, sizeof(size));
	if (size < abi->first || size > ABI_MAX_SIZE)
		return error_make(ret_err, m, ERRAND_EARG,
				  "struct %s: its .size is %u, expected %zu to %d",
				  abi->name, size, abi->first, ABI_MAX_SIZE);
	memcpy(to, from, size < abi->now ? size : abi->now);
	if (size > abi->now &&
	    !is_zero((const unsigned char *)from + abi->now, size - abi->now))
		return error_make(ret_err, m, ERRAND_EARG,
				  "struct %s: it has members that this version of the "
				  "library does not know (.size %u, known %zu)",
				  abi->name, size, abi->now);
	return check_flags(m, abi, to, ret_err);
}

int abi_take_spec(const struct mem *m, struct errand_task_spec *to,
		  const struct errand_task_spec *spec, errand_error **ret_err)
{
	int rc = abi_take(m, ABI_TASK_SPEC, to, spec, ret_err);

	if (rc != 0)
		return rc;
	if (to->producer.size > spec->size - offsetof(struct errand_task_spec, producer)) {
		memset(&to->producer, 0, sizeof(to->producer));
		return error_make(ret_err, m, ERRAND_EARG,
				  "struct errand_producer: it reaches out of its "
				  "errand_task_spec");
	}
	return abi_take(m, ABI_PRODUCER, &to->producer, &spec->producer, ret_err);
}
