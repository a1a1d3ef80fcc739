/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <string.h>

const struct command *const commands[] = {
	&command_daemon,
	&command_mcp,
	NULL,
};

static void print_commands(FILE *to)
{
	fprintf(to, "usage: errand COMMAND [OPTION...]\n\n");
	for (size_t i = 0; commands[i]; i++)
		fprintf(to, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to, "  %-12s %s\n", "--help", "show this, or `errand COMMAND --help`");
	fprintf(to, "  %-12s %s\n", "--version", "show the version");
}

static void print_options(const struct command *c, FILE *to)
{
	char left[64];

	fprintf(to, "usage: errand %s [OPTION...]\n\n%s\n\n", c->name, c->details);
	for (const struct option_spec *o = c->options; o->name; o++) {
		(void)snprintf(left, sizeof(left), "%s %s", o->name,
			       o->value ? o->value : "");
		fprintf(to, "  %-18s %s\n", left, o->help);
	}
}

/* `--name VALUE` or `--name=VALUE`: the index of the option, its value in *@ret. -1: none. */
static int match(const struct command *c, char **argv, int argc, int *at, const char **ret)
{
	const char *arg = argv[*at];

	for (int i = 0; c->options[i].name; i++) {
		size_t n = strlen(c->options[i].name);

		if (strncmp(arg, c->options[i].name, n) != 0)
			continue;
		if (!c->options[i].value && arg[n] == 0) {
			*ret = "";
			return i;
		}
		if (c->options[i].value && arg[n] == '=') {
			*ret = arg + n + 1;
			return i;
		}
		if (c->options[i].value && arg[n] == 0 && *at + 1 < argc) {
			*ret = argv[++*at];
			return i;
		}
	}
	return -1;
}

static int run_command(const struct command *c, int argc, char **argv)
{
	const char *values[MAX_OPTIONS] = {NULL}, *value;
	int which;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			print_options(c, stdout);
			return EXIT_DONE;
		}
		which = match(c, argv, argc, &i, &value);
		if (which < 0) {
			fprintf(stderr,
				"errand %s: wrong option '%s', see `errand %s --help`\n",
				c->name, argv[i], c->name);
			return EXIT_USAGE;
		}
		values[which] = value;
	}
	return c->run(values);
}

int errand_main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("errand %s\n", ERRAND_VERSION);
		return EXIT_DONE;
	}
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
		print_commands(stdout);
		return EXIT_DONE;
	}
	for (size_t i = 0; argc >= 2 && commands[i]; i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return run_command(commands[i], argc - 2, argv + 2);
	if (argc >= 2)
		fprintf(stderr, "errand: no command '%s'\n", argv[1]);
	print_commands(stderr);
	return EXIT_USAGE;
}
