/* SPDX-License-Identifier: MIT */
/* completion.c - `errand completion`: what a shell completes, from the table of commands. */
#include <string.h>

#include "cli/command.h"

static const struct option_spec options[] = {
	END_OF_OPTIONS,
};

/* Do its arguments name tasks? */
static bool takes_ids(const struct command *c)
{
	return c->args && strncmp(c->args, "ID", 2) == 0;
}

#define LIST_IDS "errand ls 2>/dev/null | awk 'NR > 1 { print $1 }'"

static void print_names(const char *between)
{
	for (size_t i = 0; commands[i]; i++)
		printf("%s%s", i ? between : "", commands[i]->name);
}

static void print_options(const struct command *c)
{
	for (const struct option_spec *o = c->options; o->name; o++)
		printf("%s ", o->name);
	printf("--help");
}

/* ---- bash ---- */

static void print_bash(void)
{
	printf("_errand() {\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} words='' ids=''\n"
	       "\tCOMPREPLY=()\n"
	       "\tif [[ $COMP_CWORD -eq 1 ]]; then\n"
	       "\t\twords='");
	print_names(" ");
	printf(" --help --version'\n"
	       "\telse\n"
	       "\t\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; commands[i]; i++) {
		printf("\t\t%s) words='", commands[i]->name);
		print_options(commands[i]);
		if (commands[i]->words)
			printf(" %s", commands[i]->words);
		printf("'%s ;;\n", takes_ids(commands[i]) ? " ids=1" : "");
	}
	printf("\t\tesac\n"
	       "\t\t[[ $cur == -* || -z $ids ]] || words=$(%s)\n"
	       "\tfi\n"
	       "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	       "}\n"
	       "complete -o default -F _errand errand\n",
	       LIST_IDS);
}

/* ---- zsh ---- */

static void print_zsh_option(const struct option_spec *o)
{
	/* No help text of ours has a bracket or a quote but the one in 'people'. */
	printf(" '%s%s[", o->name, o->value ? "=" : "");
	for (const char *p = o->help; *p; p++)
		printf("%s", *p == '\'' ? "'\\''" : (char[]){*p, 0});
	printf("]%s%s'", o->value ? ":" : "", o->value ? o->value : "");
}

static void print_zsh_arguments(const struct command *c)
{
	printf(" '*:argument:");
	if (c->words)
		printf("(%s)", c->words);
	else
		printf("%s", takes_ids(c) ? "_errand_ids" : "_files");
	printf("'");
}

static void print_zsh(void)
{
	printf("#compdef errand\n"
	       "(( $+functions[compdef] )) || { autoload -Uz compinit; compinit; }\n"
	       "_errand_ids() { compadd -- ${(f)\"$(%s)\"}; }\n"
	       "_errand() {\n"
	       "\tlocal -a names=(\n",
	       LIST_IDS);
	for (size_t i = 0; commands[i]; i++)
		printf("\t\t'%s:%s'\n", commands[i]->name, commands[i]->summary);
	printf("\t)\n"
	       "\tif (( CURRENT == 2 )); then\n"
	       "\t\t_describe command names\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tlocal name=$words[2]\n"
	       "\tshift words; (( CURRENT-- ))\n"
	       "\tcase $name in\n");
	for (size_t i = 0; commands[i]; i++) {
		printf("\t%s) _arguments", commands[i]->name);
		for (const struct option_spec *o = commands[i]->options; o->name; o++)
			print_zsh_option(o);
		printf(" '--help[show the help]'");
		print_zsh_arguments(commands[i]);
		printf(" ;;\n");
	}
	printf("\tesac\n"
	       "}\n"
	       "compdef _errand errand\n");
}

/* ---- fish ---- */

static void print_fish_text(const char *text)
{
	putchar('\'');
	for (; *text; text++)
		printf("%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
	putchar('\'');
}

static void print_fish_option(const struct command *c, const struct option_spec *o)
{
	bool is_long = o->name[1] == '-';

	printf("complete -c errand -n '__fish_seen_subcommand_from %s' %s %s%s -d ",
	       c->name, is_long ? "-l" : "-s", o->name + (is_long ? 2 : 1),
	       o->value ? " -r" : "");
	print_fish_text(o->help);
	putchar('\n');
}

/* @list: what fish makes words of */
static void print_fish_arguments(const struct command *c, const char *list)
{
	printf("complete -c errand -f -n '__fish_seen_subcommand_from %s' -a \"%s\"\n",
	       c->name, list);
}

static void print_fish(void)
{
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];

		printf("complete -c errand -n __fish_use_subcommand -a %s -d ", c->name);
		print_fish_text(c->summary);
		putchar('\n');
		for (const struct option_spec *o = c->options; o->name; o++)
			print_fish_option(c, o);
		if (c->words)
			print_fish_arguments(c, c->words);
		if (takes_ids(c))
			print_fish_arguments(
				c,
				"(errand ls 2>/dev/null | string match -r '^\\S+-\\d+')");
	}
}

static const struct shell {
	const char *name;
	void (*print)(void);
} shells[] = {
	{"bash", print_bash},
	{"fish", print_fish},
	{"zsh", print_zsh},
};

static int run(const char *const *values, char *const *args)
{
	(void)values;
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(args[0], shells[i].name) == 0) {
			shells[i].print();
			return EXIT_DONE;
		}
	return command_wrong(&command_completion, "bash, zsh or fish, not", args[0]);
}

const struct command command_completion = {
	.name = "completion",
	.summary = "print what a shell needs to complete",
	.details =
		"For bash: source <(errand completion bash). For zsh: the same. For fish:\n"
		"errand completion fish | source.",
	.options = options,
	.args = "bash|zsh|fish",
	.words = "bash zsh fish",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
