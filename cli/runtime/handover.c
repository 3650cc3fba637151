/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Another program is started by an absolute path and by nothing else: no PATH, and with privileges no word of the
 * environment. It is, in this order,
 *   1. for the Python part $KTRXER_PY, an absolute path, when we have no privileges;
 *   2. beside an executable in a build tree (BUILD/cli/ktrxer) ../../python/ktrxer-py, or ../bench/harness/NAME, when
 *      no other user could have put it there. A small build (optimization=s, no bench, no Python part) does not look;
 *   3. LIBEXECDIR/ktrxer/NAME, as compiled in.
 */
#include "handover.h"

#include <ktrxer.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef KTRXER_LIBEXECDIR
#define KTRXER_LIBEXECDIR "/usr/local/libexec/ktrxer"
#endif

static bool privileged(void)
{
	return getauxval(AT_SECURE) || geteuid() == 0 || geteuid() != getuid();
}

#ifdef KTRXER_HAVE_NEIGHBOURS
enum { WHY = 2 * PATH_MAX + 256 };

/*
 * Checks that only `owner` or root can have put this file or directory there; else `why` has a command that repairs it.
 */
static bool safe(const char *path, uid_t owner, char why[WHY])
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (st.st_uid != owner && st.st_uid != 0) {
		snprintf(why, WHY, "%s belongs to user %u, and this program to user %u: `sudo chown %u '%s'`", path,
			 (unsigned)st.st_uid, (unsigned)owner, (unsigned)owner, path);
		return false;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		snprintf(why, WHY, "%s has mode %04o, so that others may change it: `chmod go-w '%s'`", path,
			 (unsigned)st.st_mode & 07777, path);
	return !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* The same for a regular file and its directory. */
static bool trusted(const char *path, uid_t owner, char why[WHY])
{
	char directory[PATH_MAX];
	struct stat st;
	char *slash;

	snprintf(directory, sizeof directory, "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return false;
	*slash = '\0';
	return !stat(path, &st) && S_ISREG(st.st_mode) && safe(directory, owner, why) && safe(path, owner, why);
}

/*
 * Finds a program of the tree SOURCE/BUILD/cli/ktrxer. False: this executable is not in a build tree, or (with `why`)
 * other users could have put the program there.
 */
static bool find_uninstalled(const char *name, char path[PATH_MAX], char why[WHY])
{
	const bool python = strcmp(name, HANDOVER_PYTHON) == 0;
	char exe[PATH_MAX], ninja[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	struct stat self;

	if (n <= 0 || n >= (ssize_t)sizeof exe - 32)
		return false;
	exe[n] = '\0';
	for (int i = 0; i < 2; i++) { /* off with /ktrxer and /cli */
		char *slash = strrchr(exe, '/');

		if (!slash)
			return false;
		if (i == 1 && strcmp(slash, "/cli") != 0)
			return false;
		*slash = '\0';
	}
	if (snprintf(ninja, sizeof ninja, "%s/build.ninja", exe) >= (int)sizeof ninja || access(ninja, F_OK) ||
	    snprintf(ninja, sizeof ninja, "%s%s%s", exe, python ? "/../python/" : "/bench/harness/", name) >=
		    (int)sizeof ninja ||
	    !realpath(ninja, path))
		return false;
	return !stat("/proc/self/exe", &self) && trusted(path, self.st_uid, why);
}
#else
enum { WHY = 1 };

static bool find_uninstalled(const char *name, char path[PATH_MAX], char why[WHY])
{
	(void)name, (void)path, (void)why;
	return false;
}
#endif

/* NULL: not there, or not safe to start, with `why`. */
static const char *find(const char *name, char path[PATH_MAX], char why[WHY])
{
	const char *wish = strcmp(name, HANDOVER_PYTHON) == 0 ? getenv("KTRXER_PY") : NULL;

	*why = '\0';
	if (wish && wish[0] == '/' && !privileged())
		return wish;
	if (find_uninstalled(name, path, why))
		return path;
	if (*why)
		return NULL;
	return snprintf(path, PATH_MAX, KTRXER_LIBEXECDIR "/%s", name) >= PATH_MAX || access(path, F_OK) ? NULL : path;
}

/* With privileges, what would make the interpreter load other people's code is taken away. */
static void clean_environment(void)
{
	extern char **environ;

	for (char **entry = environ; entry && *entry;) {
		char name[64];
		const char *equals = strchr(*entry, '=');
		size_t length = equals ? (size_t)(equals - *entry) : 0;

		if (strncmp(*entry, "PYTHON", 6) != 0 || !length || length >= sizeof name) {
			entry++;
			continue;
		}
		memcpy(name, *entry, length);
		name[length] = '\0';
		unsetenv(name);
		entry = environ;
	}
}

/* The experiments start processes of this very command. */
static void say_which(void)
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

	if (n <= 0)
		return;
	exe[n] = '\0';
	setenv("KTRXER_BIN", exe, 1);
}

/* Python prints a traceback when SIGINT arrives while it starts. python/ktrxer-py removes the block. */
static void block_interrupt(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int handover_through(const char *name, const char *program, char *const argv[])
{
	char path[PATH_MAX], why[WHY];
	const char *found = find(program, path, why);

	if (!found)
		return 0;
	setenv(HANDOVER_PROGRAM, found, 1);
	return handover_try(name, argv);
}

int handover_try(const char *name, char *const argv[])
{
	char path[PATH_MAX], why[WHY];
	const char *program = find(name, path, why);

	if (*why) {
		fprintf(stderr, "ktrxer %s: %s is not started: %s\n", argv[1], name, why);
		return -EPERM;
	}
	if (!program)
		return 0;
	if (privileged()) {
		if (getauxval(AT_SECURE)) {
			fprintf(stderr,
				"ktrxer %s: not with a setuid bit or file capabilities: %s is not made for them; run "
				"it as root\n",
				argv[1], name);
			return -EPERM;
		}
		clean_environment();
	}
	say_which();
	if (!strcmp(name, HANDOVER_PYTHON))
		block_interrupt();
	execv(program, argv);
	fprintf(stderr, "ktrxer %s: %s cannot be started: %s; install ktrxer again\n", argv[1], program,
		strerror(errno));
	return -errno;
}
