/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keys and tokens in files. They are never taken from the command line, where every user of the machine can read them. */
#ifndef KTRXER_CLI_SECRET_H
#define KTRXER_CLI_SECRET_H

#include "sha256.h"

#include <ktrxer.h>

#define SECRET_MAX 1024
#define SECRET_MIN 8

/* The file's bytes without a newline at their end; how many, or a negative errno: unreadable, readable by others, too short or long. */
int secret_read(const char *path, uint8_t secret[SECRET_MAX], struct ktrxer_error *err);
/* The same as a key; `what` is the option's name. */
int secret_key_read(const char *path, struct hmac_key *key, struct ktrxer_error *err);

#endif
