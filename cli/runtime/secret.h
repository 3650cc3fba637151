/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keys and tokens, from files or the environment. They are never taken from the command line, which every user of the
 * machine can read; /proc/PID/environ can be read by the same user only.
 */
#ifndef KTRXER_CLI_SECRET_H
#define KTRXER_CLI_SECRET_H

#include "sha256.h"

#include <ktrxer.h>

#define SECRET_MAX 1024
#define SECRET_MIN 8
#define TOKEN_MIN 22 /* 128 bits in base64: a recorded connection lets its reader try tokens off line */

/*
 * The server's token: the content of `path`, or of the environment variable KTRXER_TOKEN when `path` is NULL. Returns
 * its length, 0 when neither is given, or a negative errno.
 */
int secret_token_read(const char *path, uint8_t secret[SECRET_MAX], struct ktrxer_error *err);
/* Keys of STAMP: of authenticated mode, and of the HMAC of TLVs in open mode. */
struct stamp_keys {
	struct hmac_key auth, tlv;
};

/* The key of an option that is not given is NULL; -EINVAL when both are given. */
int secret_stamp_keys_read(struct stamp_keys *keys, const char *auth_file, const char *tlv_file,
			   struct ktrxer_error *err);

#endif
