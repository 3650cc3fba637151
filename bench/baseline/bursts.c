/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bursts udp-sendto|udp-sendmmsg|raw-sendto|raw-sendmmsg FROM TO PORT COUNT SIZE INTERVAL_US PAYLOAD
 *
 * COUNT bursts of SIZE probes, back to back, begun INTERVAL_US apart by absolute sleeps: pairs (SIZE 2) and trains of
 * what the host's stack offers. raw: IP_HDRINCL, no UDP checksum. The payload begins with the probe's number, 8 bytes
 * big-endian. Probes for which there is no room are sent again. Frozen: see meson.build.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, HEADERS = 28, PAYLOAD = 1472 };

int main(int argc, char *argv[])
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	static uint8_t packets[BATCH][HEADERS + PAYLOAD];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	struct timespec next;
	uint64_t number = 0;
	long count, size, interval_us, length, skip;
	int fd, raw, many;

	if (argc != 9 || inet_pton(AF_INET, argv[2], &from.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[3], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: bursts udp-sendto|udp-sendmmsg|raw-sendto|raw-sendmmsg FROM TO PORT COUNT SIZE "
				"INTERVAL_US PAYLOAD\n");
		return 2;
	}
	raw = !strncmp(argv[1], "raw", 3);
	many = strstr(argv[1], "sendmmsg") != NULL;
	to.sin_port = htons((uint16_t)atoi(argv[4]));
	count = atol(argv[5]);
	size = atol(argv[6]);
	interval_us = atol(argv[7]);
	length = atol(argv[8]);
	if (count < 1 || size < 1 || interval_us < 1 || length < 8 || length > PAYLOAD) {
		fprintf(stderr, "bursts: count, size and interval from 1, payload from 8 to %d\n", PAYLOAD);
		return 2;
	}
	fd = socket(AF_INET, (raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC, raw ? IPPROTO_RAW : 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
		perror("bursts: socket");
		return 1;
	}
	skip = raw ? 0 : HEADERS;
	memset(messages, 0, sizeof messages);
	for (int i = 0; i < BATCH; i++) {
		struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
				    .tot_len = htons((uint16_t)(HEADERS + length)), .frag_off = htons(IP_DF),
				    .saddr = from.sin_addr.s_addr, .daddr = to.sin_addr.s_addr };
		struct udphdr udp = { .source = htons(40000), .dest = to.sin_port,
				      .len = htons((uint16_t)(8 + length)) };

		memcpy(packets[i], &ip, sizeof ip);
		memcpy(packets[i] + sizeof ip, &udp, sizeof udp);
		parts[i] = (struct iovec){ .iov_base = packets[i] + skip,
					   .iov_len = (size_t)(HEADERS + length - skip) };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long burst = 0; burst < count; burst++) {
		next.tv_nsec += interval_us % 1000000 * 1000;
		next.tv_sec += interval_us / 1000000 + next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		/*
		 * Numbered before the time comes: between two probes of a burst there is only the sending.
		 */
		for (int i = 0; i < BATCH && i < size; i++)
			for (int b = 0; b < 8; b++)
				packets[i][HEADERS + b] = (uint8_t)((number + (uint64_t)i) >> (56 - 8 * b));
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		for (long done = 0; done < size;) {
			long batch = size - done < BATCH ? size - done : BATCH;

			if (done) /* a burst of more than one batch */
				for (long i = 0; i < batch; i++)
					for (int b = 0; b < 8; b++)
						packets[i][HEADERS + b] =
							(uint8_t)((number + (uint64_t)i) >> (56 - 8 * b));
			for (long sent = 0; sent < batch;) {
				long n = many ? sendmmsg(fd, messages + sent, (unsigned int)(batch - sent), 0)
					      : send(fd, parts[sent].iov_base, parts[sent].iov_len, 0) < 0 ? -1 : 1;

				if (n > 0) {
					sent += n;
				} else if (errno != ENOBUFS && errno != EAGAIN && errno != ECONNREFUSED) {
					perror("bursts: send");
					return 1;
				}
			}
			number += (uint64_t)batch;
			done += batch;
		}
	}
	return 0;
}
