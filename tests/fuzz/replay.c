/* SPDX-License-Identifier: MIT */
/*
 * replay.c - feeds each file of a folder to a fuzz target, without a fuzzer.
 *
 * replay_<name> FOLDER: so `make test` walks through all that a fuzzer once found
 * interesting, with whatever compiler and sanitizers the build has. An empty or missing
 * folder is a failure: it would prove nothing. Each input lies in memory of just its
 * size, so that a sanitizer sees a read past its end.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *data;
	FILE *file;
	long size;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -1;
	file = fopen(path, "rb");
	if (!file)
		return -1;
	if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0) {
		fclose(file);
		return -1;
	}
	rewind(file);
	data = malloc(size > 0 ? (size_t)size : 1);
	if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) {
		free(data);
		fclose(file);
		return -1;
	}
	fclose(file);
	(void)LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	int passed = 0, failed = 0;
	DIR *dir;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	dir = opendir(argv[1]);
	if (!dir) {
		fprintf(stderr, "cannot open '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (feed(argv[1], entry->d_name) == 0) {
			passed++;
		} else {
			printf("cannot read '%s'\n", entry->d_name);
			failed++;
		}
	}
	closedir(dir);
	if (passed + failed == 0) {
		printf("'%s' is empty\n", argv[1]);
		failed = 1;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
