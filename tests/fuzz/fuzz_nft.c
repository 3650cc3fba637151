/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A rule as nf_tables tells of it, after the netlink header; and what sshd says of a connection. */
#include "nft.h"
#include "rx_guard.h"
#include "ssh_sessions.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct krx_session session;
	uint32_t mark = 0;
	uint64_t packets = 0;
	char *text = malloc(size + 1);

	ktrxer_nft_rule_read(bytes_of(data, size), &mark, &packets);
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (ssh_session_parse(&session, text) &&
	    (!session.from_port || !session.to_port || session.from.family != session.to.family))
		abort();
	free(text);
	return 0;
}
