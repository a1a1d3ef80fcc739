/* SPDX-License-Identifier: MIT */
/*
 * place.c - where a database must not lie. The log (WAL) is shared through mapped memory, and
 * locks must be real: neither holds between the machines of a network file system.
 */
#include "store/internal.h"

static const struct {
	uint32_t magic;
	const char *name;
} remote[] = {
	{0x6969, "NFS"},        {0xff534d42, "CIFS"},       {0xfe534d42, "SMB"},
	{0x517b, "SMB"},        {0x01021997, "9p"},         {0x65735546, "FUSE"},
	{0x5346414f, "AFS"},    {0x6b414653, "AFS"},        {0x0bd00bd0, "Lustre"},
	{0x47504653, "GPFS"},   {0x00c36400, "Ceph"},       {0x19830326, "BeeGFS"},
	{0x7461636f, "OCFS2"},  {0x01161970, "GFS2"},       {0x73757245, "Coda"},
	{0x564c, "NCP"},        {0x20030528, "OrangeFS"},   {0xaad7aaea, "PanFS"},
	{0xbacbacbc, "VMware"}, {0x786f4256, "VirtualBox"},
};

const char *place_is_remote(uint32_t magic)
{
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		if (remote[i].magic == magic)
			return remote[i].name;
	return NULL;
}
