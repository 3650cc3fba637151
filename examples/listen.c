/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The first packets that a rule asks for, with the kernel's stamps.
 *
 *     listen DEVICE COUNT "capture udp from any to 192.0.2.0/24:53"
 */
#include <ktrxer.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	struct ktrxer_error err = { 0 };
	struct krx_packet packet;
	struct krx_stats stats;
	struct krx_rule rule;
	struct krx *rx = NULL;
	uint64_t before = 0;
	int left = argc == 4 ? atoi(argv[2]) : 0, rc = 0;

	if (left < 1) {
		fprintf(stderr, "usage: listen DEVICE COUNT RULE\n");
		return 2;
	}
	options.device = argv[1];
	if (krx_rule_parse(&rule, argv[3], &err) < 0 || krx_open(&rx, &options, &rule, 1, &err) < 0) {
		fprintf(stderr, "listen: %s\n", err.text);
		return 1;
	}
	puts("listening");
	fflush(stdout);
	while (left && rc >= 0) {
		struct pollfd ready = { .fd = krx_fd(rx), .events = POLLIN };

		if (poll(&ready, 1, -1) < 0 && errno != EINTR)
			break;
		for (; left && (rc = krx_next(rx, &packet)) == 1; left--) {
			printf("%u bytes, %.3f us after the one before\n", packet.original_length,
			       before ? (double)(packet.mono_ns - before) / 1000 : 0.0);
			before = packet.mono_ns;
		}
	}
	if (krx_stats(rx, &stats, NULL, 0) == 0)
		printf("by %s, %d lost for want of room\n", stats.backend, (int)stats.lost);
	krx_close(rx);
	return left ? 1 : 0;
}
