/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/nearest.h"
#include "run/screen.h"

const struct command *const commands[] = {
	&command_run,        &command_ls,   &command_output, &command_logs,
	&command_wait,       &command_kill, &command_extend, &command_sessions,
	&command_history,    &command_gc,   &command_doctor, &command_config,
	&command_completion, &command_mcp,  &command_daemon, NULL,
};

/* ---- help ---- */

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

	fprintf(to, "usage: errand %s [OPTION...]%s%s\n\n%s\n\n", c->name,
		c->args ? " " : "", c->args ? c->args : "", c->details);
	for (const struct option_spec *o = c->options; o->name; o++) {
		(void)snprintf(left, sizeof(left), "%s%s%s", o->name, o->value ? " " : "",
			       o->value ? o->value : "");
		fprintf(to, "  %-18s %s\n", left, o->help);
	}
	fprintf(to, "  %-18s %s\n", "--help", "show this");
}

/* ---- options ---- */

/* Where the name of option @o ends in @arg; NULL: it is not that one. */
static const char *behind_name(const struct option_spec *o, const char *arg)
{
	size_t n = strlen(o->name);
	bool is_it = strncmp(arg, o->name, n) == 0 && (!arg[n] || arg[n] == '=');

	return is_it ? arg + n : NULL;
}

/* `--name VALUE` or `--name=VALUE`: the index of the option, its value in *@ret. -1: none. */
static int match(const struct command *c, char **argv, int argc, int *at, const char **ret)
{
	for (int i = 0; c->options[i].name; i++) {
		const struct option_spec *o = &c->options[i];
		const char *rest = behind_name(o, argv[*at]);

		if (!rest)
			continue;
		if (!o->value && !*rest)
			*ret = "";
		else if (o->value && *rest)
			*ret = rest + 1;
		else if (o->value && *at + 1 < argc)
			*ret = argv[++*at];
		else
			return -1;
		return i;
	}
	return -1;
}

/* An argument may be any bytes. */
static void put_arg(struct buf *out, const char *arg)
{
	buf_addc(out, '\'');
	screen_put(out, arg, strlen(arg), 200);
	buf_addc(out, '\'');
}

int command_wrong(const struct command *c, const char *what, const char *arg)
{
	autobuf struct buf shown = BUF_INIT(KIB(4));

	put_arg(&shown, arg);
	fprintf(stderr, "errand %s: %s %s, see `errand %s --help`\n", c->name, what,
		buf_text(&shown), c->name);
	return EXIT_USAGE;
}

static int wrong_option(const struct command *c, const char *arg)
{
	struct nearest n = {.typed = arg, .len = strcspn(arg, "=")};
	autobuf struct buf shown = BUF_INIT(KIB(4));

	for (const struct option_spec *o = c->options; o->name; o++) {
		if (behind_name(o, arg))
			return command_wrong(
				c, o->value ? "no value for" : "unwanted value for",
				o->name);
		nearest_try(&n, o->name);
	}
	nearest_try(&n, "--help");
	if (!n.found || n.distance == 0) /* --help=... */
		return command_wrong(c, "wrong option", arg);
	put_arg(&shown, arg);
	fprintf(stderr, "errand %s: no option %s; did you mean '%s'?\n", c->name,
		buf_text(&shown), n.found);
	return EXIT_USAGE;
}

static int no_command(const char *name)
{
	struct nearest n = {.typed = name, .len = strlen(name)};
	autobuf struct buf shown = BUF_INIT(KIB(4));

	for (size_t i = 0; commands[i]; i++)
		nearest_try(&n, commands[i]->name);
	put_arg(&shown, name);
	fprintf(stderr, "errand: no command %s", buf_text(&shown));
	if (n.found)
		fprintf(stderr, "; did you mean '%s'?\n", n.found);
	else
		fprintf(stderr, ", see `errand --help`\n");
	return EXIT_USAGE;
}

/* Where one is closed, the next file would get its number, and be given what is meant for it. */
static void fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int run_with(const struct command *c, const char *const *values, char **args,
		    size_t n)
{
	if (n > c->max_args)
		return command_wrong(c, c->args ? "too many arguments:" : "wrong option",
				     args[c->max_args]);
	if (n < c->min_args)
		return command_wrong(c, "missing", c->args);
	for (int i = 0; c->options[i].name; i++)
		if (values[i] && c->options[i].value && !*values[i])
			return command_wrong(c, "no value for", c->options[i].name);
	if (!c->refuses_closed)
		fill_standard_descriptors();
	return c->run(values, args);
}

/* What is no option moves to the front of argv. */
static int run_command(const struct command *c, int argc, char **argv)
{
	const char *values[MAX_OPTIONS] = {NULL}, *value = NULL;
	bool has_ended = false;
	size_t n = 0;
	int which;

	for (int i = 0; i < argc; i++) {
		if (!has_ended && strcmp(argv[i], "--") == 0) {
			has_ended = true;
			continue;
		}
		if (has_ended || argv[i][0] != '-' || !argv[i][1]) {
			has_ended = has_ended || c->takes_command;
			argv[n++] = argv[i];
			continue;
		}
		if (strcmp(argv[i], "--help") == 0) {
			print_options(c, stdout);
			return EXIT_DONE;
		}
		which = match(c, argv, argc, &i, &value);
		if (which < 0)
			return wrong_option(c, argv[i]);
		values[which] = value;
	}
	argv[n] = NULL;
	return run_with(c, values, argv, n);
}

static int dispatch(int argc, char **argv)
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
		return no_command(argv[1]);
	print_commands(stderr);
	return EXIT_USAGE;
}

int errand_main(int argc, char **argv)
{
	int code = dispatch(argc, argv);

	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fprintf(stderr, "errand: cannot write to stdout: %s\n", strerror(errno));
	return EXIT_FAILED;
}
