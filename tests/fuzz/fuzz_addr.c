/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An accepted address is written in one way only, and that way is read as the same address. */
#include <ktrxer.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct ktrxer_addr *addr)
{
	char text[KTRXER_ADDR_TEXT], again[KTRXER_ADDR_TEXT];
	struct ktrxer_addr back;

	ktrxer_addr_format(addr, text);
	if (ktrxer_addr_parse(&back, text) || !ktrxer_addr_equal(addr, &back) ||
	    strcmp(ktrxer_addr_format(&back, again), text))
		abort();
	ktrxer_addr_is_local_use(addr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct ktrxer_addr addr;
	uint16_t port = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!ktrxer_addr_parse(&addr, text))
		round_trip(&addr);
	if (!ktrxer_addr_port_parse(&addr, &port, text))
		round_trip(&addr);
	free(text);
	/* any bytes are an address that can be written */
	if (size >= 16) {
		addr = (struct ktrxer_addr){ .family = size & 1 ? AF_INET : AF_INET6 };
		memcpy(addr.bytes, data, size & 1 ? 4 : 16);
		round_trip(&addr);
	}
	return 0;
}
