/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "token.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { RANDOM = 16, LENGTH = 2 * RANDOM };

static const char *directory(void)
{
	static const char *const names[] = { "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);

		if (value && *value == '/')
			return value;
	}
	return geteuid() == 0 ? "/run" : getenv("HOME");
}

static int token_make(uint8_t token[SECRET_MAX], struct ktrxer_error *err)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t random[RANDOM];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	for (size_t i = 0; i < sizeof random; i++) {
		token[2 * i] = (uint8_t)digits[random[i] >> 4];
		token[2 * i + 1] = (uint8_t)digits[random[i] & 15];
	}
	secret_forget(random, sizeof random);
	return LENGTH;
}

int token_keep(char *path, size_t size, uint64_t port, uint8_t token[SECRET_MAX], struct ktrxer_error *err)
{
	const char *where = directory();
	int fd, rc;

	if (!where || (size_t)snprintf(path, size, "%s/ktrxer-%" PRIu64 ".token", where, port) >= size)
		return ktrxer_fail(err, -ENOENT,
				   "no directory for a token (RUNTIME_DIRECTORY, XDG_RUNTIME_DIR and HOME are not "
				   "set): give --token-file");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return secret_token_read(path, token, err);
	rc = -errno;
	if (fd < 0)
		return ktrxer_fail(err, rc, "'%s': the token cannot be kept there: %m; give --token-file", path);
	rc = token_make(token, err);
	if (rc > 0 && write(fd, token, (size_t)rc) != rc)
		rc = ktrxer_fail(err, -EIO, "'%s': the token cannot be written; give --token-file", path);
	close(fd);
	if (rc < 0)
		unlink(path);
	return rc;
}
