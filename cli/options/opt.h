/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Options are tables. From one table per subcommand come parsing, help, the man page and shell completion; there is no
 * second place where an option is described.
 */
#ifndef KTRXER_CLI_OPT_H
#define KTRXER_CLI_OPT_H

#include <ktrxer.h>

#include <stdio.h>

enum opt_type {
	OPT_FLAG = 1, /* bool: --name; with the fallback "yes" it is on unless --no-name */
	OPT_UINT,     /* uint64_t: 10, 10k, 0x10 */
	OPT_INT,      /* int64_t; min and max are then int64_t too */
	OPT_DURATION, /* uint64_t ns: 10ms, 1.5s, 250us, 2m; a bare number is seconds */
	OPT_RATE,     /* struct opt_rate: probes a second, exact as a fraction: 36k, 100/s, 6000/m, 0.5 */
	OPT_BITRATE,  /* uint64_t bit/s: 10M, 1G, 9.5Mbit */
	OPT_SIZE,     /* uint64_t bytes: 64, 64k (1000), 64Ki (1024) */
	OPT_STRING,   /* const char *; never empty */
	OPT_CHOICE,   /* int: index into `choices` */
	OPT_LIST,     /* struct opt_list: a string each time it is given */
	OPT_ADDRESS,  /* struct ktrxer_addr */
	OPT_SWITCH,   /* int: --name 1, --no-name -1, neither 0: the command chooses */
	OPT_DSCP,     /* uint8_t: 0 to 63, or a name: EF, CS1, AF41 */
	OPT_ECN,      /* uint8_t: 0 to 3, or off, ect1, ect0, ce */
	OPT_MAC,      /* struct opt_mac */
	OPT_RANGE,    /* struct opt_range: 28..1428/50, or one number */
};

struct opt_rate {
	uint64_t num, den;
	bool given;
}; /* num/den probes a second */
struct opt_list {
	const char **items;
	int count;
}; /* freed by opt_free() */
struct opt_mac {
	uint8_t bytes[6];
	bool given;
};
struct opt_range {
	uint64_t from, to, step;
	bool given;
};

struct opt {
	const char *name;     /* long name without dashes; NULL ends a table */
	char letter;          /* short name, 0: none */
	uint8_t type;         /* enum opt_type; narrow, since there are hundreds of these */
	uint16_t offset;      /* of the field in the command's option struct */
	const char *argument; /* shown in help: "DEV", "D", "R"; NULL for flags */
	const char *fallback; /* default, as the user would type it; NULL: none (field stays zero) */
	const char
		*help; /* one sentence without its full stop; the man page shows the same. NULL: works, and is hidden */
	const char *const *choices; /* OPT_CHOICE, NULL-terminated; also offered by completion for OPT_STRING */
	uint64_t min, max;   /* inclusive, for numbers; max 0: no bound. Rates: probes a second. Ranges: both ends */
	const char *heading; /* begins a new section in help and man page */
};

/* Prose of man pages, and examples, are not in a program that makes no man pages (meson option `man`). */
#ifdef KTRXER_HAVE_MAN
#define OPT_PROSE(text) (text)
#else
#define OPT_PROSE(text) NULL
#endif

struct opt_positional {
	const char *name; /* "HOST"; NULL ends the list */
	size_t offset;    /* const char *; the last may be a struct opt_list when `many` */
	const char *help;
	bool optional, many;
	const char *const *choices; /* checked, and offered by completion; NULL: anything */
};

struct cli;

struct command {
	const char *name;          /* "send"; for a nested one "bench rate" */
	const char *summary;       /* one line, no full stop */
	const char *description;   /* OPT_PROSE(): paragraphs for the man page, separated by blank lines */
	const char *examples;      /* OPT_PROSE(): lines "command\tWhat it does." */
	const struct opt *options; /* NULL: none */
	const struct opt_positional *positionals;         /* NULL: none */
	size_t options_size;                              /* of the option struct, zeroed before parsing */
	int (*run)(struct cli *cli, const void *options); /* exit status */
	/* it belongs to this program of LIBEXECDIR, which has its options; name and summary are all that stands here */
	const char *program;
	bool tables;   /* with `program`: where the Python part is installed it runs that program and prints tables */
	bool lines;    /* prints JSON lines only */
	bool measures; /* has accounts and a verdict: gets the common output options */
	bool reports;  /* has a result but measures nothing (doctor): gets --json and --quiet, and no verdict */
	bool serves;   /* runs until it is stopped (serve): gets --json, --jsonl and --quiet, and no verdict */
	bool hidden;   /* works, but is in no help, man page or completion */
	bool unconfigured; /* the configuration (cli/runtime/config.h) sets none of its options */
};

/* A table and the struct that it fills: the common options stand beside a command's own. */
struct opt_set {
	const struct opt *table; /* NULL ends a list of sets */
	void *base;
};

/* A value from a configuration file, for an option, or the positional HOST, that the command line does not give. */
struct opt_preset {
	const char *name; /* "port"; "host" is the positional HOST. NULL ends a list */
	const char *value;
	const char *where;    /* "FILE:LINE", for messages */
	const char *fallback; /* only for an option with this default; NULL: any */
};

#define OPT_HELP 1

/*
 * Parses argv (after the subcommand's name) into `options`, by the command's table and the further tables `extra` (or
 * NULL). `presets` (or NULL) replace defaults; those of options that the command does not have are left out. 0,
 * OPT_HELP when --help (or -h) was there, or a negative errno with a line that names option, value and remedy. Strings
 * point into argv and `presets`. Whatever it returns, opt_free() is right afterwards.
 */
int opt_parse(const struct command *command, void *options, const struct opt_set *extra,
	      const struct opt_preset *presets, int argc, char *const argv[], struct ktrxer_error *err);
void opt_free(const struct command *command, void *options);

/* Help for people, at most 100 columns wide. The bases of `extra` are not looked at. */
void opt_help(const struct command *command, const struct opt_set *extra, FILE *to);

/* The manual page in mdoc, section 1. `commands` is for SEE ALSO; NULL-terminated like all lists of commands. */
void opt_man(const struct command *command, const struct opt_set *extra, FILE *to);
void opt_man_index(const struct command *const *commands, FILE *to);

/*
 * The words that may stand at the cursor, one a line, some with a tab and a help text; or ":files", ":directories",
 * ":hosts", of which the shell has the list. `words` is the command line after "ktrxer", the last one as far as it is
 * typed; `command` is the command of the first `matched` of them, or NULL, and `extra` its further tables.
 */
void opt_complete(const struct command *const *commands, const struct command *command, const struct opt_set *extra,
		  int matched, int count, char *const words[], FILE *to);

/* The text beside an option's name: its argument, or its type's usual one; NULL for flags. */
const char *opt_argument(const struct opt *opt);
/*
 * How values of this type are written, for the foot of help and man page: "10ms, 1.5s, 250us, 2m"; NULL: it goes
 * without saying.
 */
const char *opt_forms(enum opt_type type);
/* Takes no value. */
/* --no-NAME exists: flags that are on by default, and switches. */
bool opt_negatable(const struct opt *opt);
/* The name among `count` that was most likely meant by `typed`, NULL when none is near. */
const char *opt_nearest(const char *typed, const char *const *names, int count);

#endif
