/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where a message of a client of OWAMP-Control ends, behind its set-up. */
#ifndef KTRXER_METHODS_OWAMP_MESSAGE_H
#define KTRXER_METHODS_OWAMP_MESSAGE_H

#include "owamp_packet.h"

#include <sys/types.h>

/*
 * Bytes of the message of which the first `have` are `data`; 0: not known yet. -EBADMSG: the bytes are no message, or
 * none that is allowed while a test runs (`testing`) or does not run. A request with more slots than the server takes
 * ends before its slots.
 */
ssize_t owamp_message_length(const uint8_t *data, size_t have, bool testing);

#endif
