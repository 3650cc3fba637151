/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_CLI_DSCP_H
#define KTRXER_CLI_DSCP_H

#include <ktrxer.h>

/* "EF", "CS5", "BE", "46", or "AF41"; a negative errno and one line. */
int dscp_parse(uint8_t *dscp, const char *text, size_t length, struct ktrxer_error *err);
/* The next of a list with commas between; *list is then behind it, NULL after the last. */
int dscp_next(uint8_t *dscp, const char **list, struct ktrxer_error *err);
const char *dscp_name(uint8_t dscp, char text[8]);
/* "off", "ect1", "ect0", "ce", or the number of the two header bits; a negative errno and one line. */
int ecn_parse(uint8_t *ecn, const char *text, size_t length, struct ktrxer_error *err);
extern const char *const ecn_names[4];

#endif
