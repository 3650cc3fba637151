/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The token of a server that was given none. */
#ifndef KTRXER_CLI_SERVE_TOKEN_H
#define KTRXER_CLI_SERVE_TOKEN_H

#include "secret.h"

/*
 * The token in ktrxer-PORT.token of the user's runtime directory: read if the file is there, else made of 128 random
 * bits and written with mode 0600. `path` gets the name of the file. The length of the token, or a negative errno.
 */
int token_keep(char *path, size_t size, uint64_t port, uint8_t token[SECRET_MAX], struct ktrxer_error *err);

#endif
