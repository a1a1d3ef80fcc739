/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

int main(int argc, char **argv)
{
	return errand_main(argc, argv);
}
