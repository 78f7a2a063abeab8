/* SPDX-License-Identifier: Apache-2.0 */
/* cuweir completions: what a shell completes, made from options.def. */
#include "command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct option_row {
	const char *name;
	int letter;
	int argument;
	const char *text;
};

static const struct option_row rows[] = {
#define OPTION(name, letter, argument, variable, text) { name, letter, argument, text },
#include "options.def"
#undef OPTION
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

#define COMMANDS "run check policies symbolize completions"
#define POLICY_NAMES "cuweir policies 2>/dev/null | sed -n 's/^\\([^ ][^ ]*\\) .*/\\1/p'"

/* The words of the help line after the option: what follows the column of blanks. */
static const char *words_of(const struct option_row *row)
{
	const char *at = strstr(row->text, row->name);
	const char *blanks = at != NULL ? strstr(at, "  ") : NULL;

	blanks = blanks != NULL ? blanks : row->text;
	return blanks + strspn(blanks, " ");
}

/* In single quotes of a shell, without what zsh's _arguments reads as its own. */
static void put_words(const char *words)
{
	for (; *words != '\0'; words++) {
		if (*words == '\'') {
			fputs("'\\''", stdout);
		} else if (strchr("[]", *words) != NULL) {
			putchar(*words == '[' ? '(' : ')');
		} else if (*words == ':') {
			fputs("\\:", stdout);
		} else {
			putchar(*words);
		}
	}
}

static void put_options(void)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		printf("%s--%s", i > 0 ? " " : "", rows[i].name);
		if (rows[i].letter != 0) {
			printf(" -%c", rows[i].letter);
		}
	}
}

/* The options whose value is the next word, as patterns of `case`. */
static void put_takers(void)
{
	const char *bar = "";

	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (rows[i].argument != required_argument) {
			continue;
		}
		printf("%s--%s", bar, rows[i].name);
		bar = "|";
		if (rows[i].letter != 0) {
			printf("|-%c", rows[i].letter);
		}
	}
}

static void put_bash(void)
{
	puts("# bash completion for cuweir\n"
	     "_cuweir()\n"
	     "{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i\n"
	     "\tCOMPREPLY=()\n"
	     "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"" COMMANDS " --help --version\" -- \"$cur\"))\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase ${COMP_WORDS[1]} in\n"
	     "\trun) ;;\n"
	     "\tpolicies)\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$(" POLICY_NAMES ")\" -- \"$cur\"))\n"
	     "\t\treturn ;;\n"
	     "\tcompletions)\n"
	     "\t\tCOMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$cur\"))\n"
	     "\t\treturn ;;\n"
	     "\t*)\n"
	     "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
	     "\t\treturn ;;\n"
	     "\tesac\n"
	     "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	     "\t\tcase ${COMP_WORDS[i]} in");
	fputs("\t\t", stdout);
	put_takers();
	puts(") ((i++)) ;;\n"
	     "\t\t=) ((i++)) ;;\n"
	     "\t\t--) ((i++)); break ;;\n"
	     "\t\t-*) ;;\n"
	     "\t\t*) break ;;\n"
	     "\t\tesac\n"
	     "\tdone\n"
	     "\tif [ \"$i\" -lt \"$COMP_CWORD\" ] && declare -F _command_offset >/dev/null; then\n"
	     "\t\t_command_offset \"$i\"\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase $prev in\n"
	     "\t--policy|-p) COMPREPLY=($(compgen -W \"$(" POLICY_NAMES ")\" -- \"$cur\")) ;;\n"
	     "\t--log|-o) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
	     "\t*)\n"
	     "\t\tcase $cur in");
	fputs("\t\t-*) COMPREPLY=($(compgen -W \"", stdout);
	put_options();
	puts("\" -- \"$cur\")) ;;\n"
	     "\t\t*) COMPREPLY=($(compgen -c -f -- \"$cur\")) ;;\n"
	     "\t\tesac ;;\n"
	     "\tesac\n"
	     "}\n"
	     "complete -o default -F _cuweir cuweir");
}

static const char *zsh_value(const struct option_row *row)
{
	if (row->argument == no_argument) {
		return "";
	}
	if (row->argument == optional_argument) {
		return strcmp(row->name, "report") == 0 ? "::form:(text json)" : "::frames: ";
	}
	if (strcmp(row->name, "policy") == 0) {
		return ":policy:($(" POLICY_NAMES "))";
	}
	return strcmp(row->name, "log") == 0 ? ":file:_files" : ":value:";
}

/* zsh's single quotes hold POLICY_NAMES's own as '\''. */
static void put_quoted(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			fputs("'\\''", stdout);
		} else {
			putchar(*text);
		}
	}
}

static void put_zsh_option(const struct option_row *row)
{
	const char *repeated = strcmp(row->name, "policy") == 0 ||
			       strcmp(row->name, "verbose") == 0 ? "*" : "";
	const char *equal = row->argument == optional_argument ? "=-"
			    : row->argument == required_argument ? "=" : "";

	printf("\t\t'%s--%s%s[", repeated, row->name, equal);
	put_words(words_of(row));
	putchar(']');
	put_quoted(zsh_value(row));
	puts("' \\");
	if (row->letter != 0 && row->argument != optional_argument) {
		printf("\t\t'%s-%c%s[", repeated, row->letter,
		       row->argument == required_argument ? "+" : "");
		put_words(words_of(row));
		putchar(']');
		put_quoted(zsh_value(row));
		puts("' \\");
	}
}

static void put_zsh(void)
{
	puts("#compdef cuweir\n"
	     "if ((CURRENT == 2)); then\n"
	     "\tcompadd " COMMANDS " -- --help --version\n"
	     "\treturn\n"
	     "fi\n"
	     "case $words[2] in\n"
	     "run)\n"
	     "\tshift words\n"
	     "\t((CURRENT--))\n"
	     "\t_arguments -s -S \\");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		put_zsh_option(&rows[i]);
	}
	puts("\t\t'*::program:_normal' ;;\n"
	     "policies) compadd -- $(" POLICY_NAMES ") ;;\n"
	     "completions) compadd bash zsh fish ;;\n"
	     "*) _files ;;\n"
	     "esac");
}

static void put_fish(void)
{
	puts("# fish completion for cuweir\n"
	     "complete -c cuweir -n __fish_use_subcommand -f -a '" COMMANDS "'\n"
	     "complete -c cuweir -n __fish_use_subcommand -l version -d 'the version'\n"
	     "complete -c cuweir -n '__fish_seen_subcommand_from completions' -f "
	     "-a 'bash zsh fish'\n"
	     "complete -c cuweir -n '__fish_seen_subcommand_from policies' -f "
	     "-a \"(cuweir policies 2>/dev/null | string match -rg '^(\\\\S+) ')\"");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		printf("complete -c cuweir -n '__fish_seen_subcommand_from run' -l %s", rows[i].name);
		if (rows[i].letter != 0) {
			printf(" -s %c", rows[i].letter);
		}
		if (rows[i].argument == required_argument) {
			fputs(strcmp(rows[i].name, "log") == 0 ? " -r -F" : " -x", stdout);
		}
		if (strcmp(rows[i].name, "policy") == 0) {
			fputs(" -a \"(cuweir policies 2>/dev/null | string match -rg "
			      "'^(\\\\S+) ')\"", stdout);
		}
		if (strcmp(rows[i].name, "report") == 0) {
			fputs(" -a 'text json'", stdout);
		}
		fputs(" -d '", stdout);
		for (const char *at = words_of(&rows[i]); *at != '\0'; at++) {
			if (*at == '\'') {
				putchar('\\');
			}
			putchar(*at);
		}
		puts("'");
	}
}

int command_completions(int argc, char **argv)
{
	if (wants_help(argc, argv)) {
		puts("usage: cuweir completions bash | zsh | fish\n\n"
		     "Prints the completions of a shell, as they are installed; by hand:\n"
		     "  bash: eval \"$(cuweir completions bash)\"\n"
		     "  zsh:  cuweir completions zsh >DIRECTORY_OF_fpath/_cuweir\n"
		     "  fish: cuweir completions fish >~/.config/fish/completions/cuweir.fish");
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "bash") == 0) {
		put_bash();
	} else if (argc == 2 && strcmp(argv[1], "zsh") == 0) {
		put_zsh();
	} else if (argc == 2 && strcmp(argv[1], "fish") == 0) {
		put_fish();
	} else {
		refuse("completions: want bash, zsh or fish");
	}
	return 0;
}
