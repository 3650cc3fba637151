/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "secret.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int secret_check(int fd, const char *path, struct ktrxer_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return ktrxer_fail(err, -errno, "'%s' cannot be looked at", path);
	if (!S_ISREG(st.st_mode))
		return ktrxer_fail(err, -EINVAL, "'%s' is no file", path);
	if (st.st_mode & 077)
		return ktrxer_fail(
			err, -EPERM,
			"'%s' holds a secret, and has mode %04o, so that other users may use it: `chmod 600 '%s'`",
			path, (unsigned)st.st_mode & 07777, path);
	return 0;
}

/*
 * The file's bytes without a newline at their end; how many, or a negative errno: unreadable, readable by others, too
 * short or long.
 */
static int secret_read(const char *path, uint8_t secret[SECRET_MAX], struct ktrxer_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;
	ssize_t n;

	if (fd < 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "%s: %m", path);
	}
	rc = secret_check(fd, path, err);
	if (rc < 0)
		goto out;
	n = read(fd, secret, SECRET_MAX);
	if (n > 0 && secret[n - 1] == '\n')
		n--;
	rc = (int)n;
	if (n < 0)
		rc = ktrxer_fail(err, -EIO, "'%s' cannot be read", path);
	else if (n < SECRET_MIN || n >= SECRET_MAX - 1)
		rc = ktrxer_fail(err, -EINVAL,
				 "'%s' holds %zd bytes; a secret has %d to %d: `head -c 32 /dev/urandom | base64 > %s`",
				 path, n, SECRET_MIN, SECRET_MAX - 2, path);
out:
	close(fd);
	return rc;
}

int secret_token_read(const char *path, uint8_t secret[SECRET_MAX], struct ktrxer_error *err)
{
	const char *value = getenv("KTRXER_TOKEN");
	size_t length;

	if (path) {
		const int n = secret_read(path, secret, err);

		if (n < 0 || n >= TOKEN_MIN)
			return n;
		return ktrxer_fail(err, -EINVAL,
				   "'%s' holds %d bytes; a token has at least %d (128 bits), and is random: `head -c "
				   "16 /dev/urandom | "
				   "base64 > %s`",
				   path, n, TOKEN_MIN, path);
	}
	if (!value || !*value)
		return 0;
	length = strlen(value);
	if (length < TOKEN_MIN || length > SECRET_MAX - 2)
		return ktrxer_fail(err, -EINVAL,
				   "KTRXER_TOKEN holds %zu bytes; a token has %d to %d, and is random: `head -c 16 "
				   "/dev/urandom | base64`",
				   length, TOKEN_MIN, SECRET_MAX - 2);
	memcpy(secret, value, length);
	return (int)length;
}

static int key_read(struct hmac_key *key, const char *path, struct ktrxer_error *err)
{
	uint8_t secret[SECRET_MAX];
	int n = secret_read(path, secret, err);

	if (n >= 0)
		hmac_key_set(key, secret, (size_t)n);
	secret_forget(secret, sizeof secret);
	return n < 0 ? n : 0;
}

int secret_stamp_keys_read(struct stamp_keys *keys, const char *auth_file, const char *tlv_file,
			   struct ktrxer_error *err)
{
	if (auth_file && tlv_file)
		return ktrxer_fail(err, -EINVAL,
				   "--auth-key-file and --tlv-key-file exclude each other: "
				   "authenticated mode protects TLVs by its own key");
	if (auth_file)
		return key_read(&keys->auth, auth_file, err);
	return tlv_file ? key_read(&keys->tlv, tlv_file, err) : 0;
}
