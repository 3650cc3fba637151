/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * arrivals ADDRESS PORT COUNT SECONDS
 *
 * The judge: when did each UDP probe arrive, by the kernel's own stamp (SO_TIMESTAMPNS)? Prints "ready" when it
 * listens; after COUNT probes, SECONDS or SIGTERM one line for each probe, "NUMBER STAMP_NS", NUMBER being the first 8
 * bytes of the payload, big-endian. The lines come at the end: while probes arrive nothing is written. Frozen: see
 * meson.build.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

enum { BATCH = 64, SIZE = 64 };

struct arrival {
	uint64_t number, stamp_ns;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t stamp_of(struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		struct timespec t;

		/* An old stamp's layout is the kernel's long, which is time_t where this is run. */
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS || c->cmsg_len < CMSG_LEN(sizeof t))
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof t);
		return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	return 0;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	static uint8_t payload[BATCH][SIZE];
	static union { struct cmsghdr header; uint8_t space[128]; } control[BATCH];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	struct sigaction action = { .sa_handler = stop }; /* no SA_RESTART: the receive ends */
	struct timeval nap = { .tv_usec = 100000 };
	struct arrival *arrivals;
	size_t count, got = 0;
	uint64_t end;
	int fd, one = 1, buffer = 32 << 20;

	if (argc != 5 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 || atol(argv[3]) < 1) {
		fprintf(stderr, "usage: arrivals ADDRESS PORT COUNT SECONDS\n");
		return 2;
	}
	at.sin_port = htons((uint16_t)atoi(argv[2]));
	count = (size_t)atol(argv[3]);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	arrivals = mmap(NULL, count * sizeof *arrivals, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arrivals == MAP_FAILED) {
		perror("arrivals: memory");
		return 1;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &nap, sizeof nap) < 0) {
		perror("arrivals: socket");
		return 1;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	end = now_ns() + (uint64_t)(atof(argv[4]) * 1e9);
	puts("ready");
	fflush(stdout);
	while (!stopped && got < count && now_ns() < end) {
		int n;

		for (int i = 0; i < BATCH; i++) {
			parts[i] = (struct iovec){ .iov_base = payload[i], .iov_len = SIZE };
			messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1,
							       .msg_control = &control[i],
							       .msg_controllen = sizeof control[i] };
		}
		n = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			perror("arrivals: recvmmsg");
			return 1;
		}
		for (int i = 0; i < n && got < count; i++) {
			uint64_t number = 0;

			if (messages[i].msg_len < 8)
				continue;
			for (int b = 0; b < 8; b++)
				number = number << 8 | payload[i][b];
			arrivals[got++] = (struct arrival){ number, stamp_of(&messages[i].msg_hdr) };
		}
	}
	for (size_t i = 0; i < got; i++)
		printf("%llu %llu\n", (unsigned long long)arrivals[i].number, (unsigned long long)arrivals[i].stamp_ns);
	return fflush(stdout) ? 1 : 0;
}
