/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cross ADDRESS PORT PER_SECOND SECONDS
 *
 * Cross traffic as in the papers: UDP datagrams of 100 to 1400 bytes (on IP, uniformly), PER_SECOND of them, paced by
 * absolute sleeps. Late datagrams leave at once. Prints {"sent": N, "refused": N, "duration_ns": N}. Frozen: see
 * meson.build.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	unsigned long long sent = 0, refused = 0;
	uint64_t start, end, now, rate, x = 1;
	static uint8_t payload[1400];
	int fd;

	if (argc != 5 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 || atol(argv[3]) < 1) {
		fprintf(stderr, "usage: cross ADDRESS PORT PER_SECOND SECONDS\n");
		return 2;
	}
	to.sin_port = htons((uint16_t)atoi(argv[2]));
	rate = (uint64_t)atol(argv[3]);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
		perror("cross: socket");
		return 1;
	}
	prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
	start = now_ns();
	end = start + (uint64_t)(atof(argv[4]) * 1e9);
	for (uint64_t i = 0; (now = now_ns()) < end; i++) {
		uint64_t due = start + i * 1000000000u / rate;

		if (due > now) {
			struct timespec t = { .tv_sec = (time_t)(due / 1000000000u),
					      .tv_nsec = (long)(due % 1000000000u) };

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		}
		x = x * 6364136223846793005u + 1442695040888963407u;
		if (send(fd, payload, 72 + (x >> 33) % 1301, 0) < 0)
			refused++;
		else
			sent++;
	}
	printf("{\"sent\": %llu, \"refused\": %llu, \"duration_ns\": %llu}\n", sent, refused,
	       (unsigned long long)(now - start));
	return 0;
}
