/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A network of routers behind a tun device, as Fakeroute makes one: `fake_routes DEVICE` reads routers from standard
 * input, prints "ready", and answers the packets that this host sends into the device until it is killed. A line is
 * a router, the first one is the next hop of this host:
 *
 * ID ADDRESS [WORD...] -> ID...        a router with its next hops, chosen by a hash of the flow ID ADDRESS
 * [WORD...]                 a host, that all destinations lead to
 *
 * Words: silent; source=ADDRESS answers from there; limit=N answers the first N packets only; every=N answers each
 * Nth packet; bucket=N:MS answers N packets, and one more each MS, as Linux does; delay=US; twice; quote=N bytes;
 * mpls=LABEL:CLASS:TTL (several: the top first); pad128 (the quote is filled up to 128 bytes); refuse=CODE
 * (destination unreachable); expire=CODE (the same, for packets whose TTL expires, while the others pass); tos=N is set
 * in what passes; nat=ADDRESS: the source of what passes,
 * natport=N: added to its port; keeps: quotes keep both; packets: the next hop by packets in turn; forge: a forged
 * answer before each true one; open: TCP is accepted.
 */
#include "bytes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { ROUTERS = 2048, NEXT = 256, PACKET = 2048, WAITING = 65536, QUOTE = 1500, LABELS = 4 };

struct router {
	char id[16], next_ids[NEXT][16];
	uint8_t address[16], source[16], nat[16];
	bool six, silent, twice, pad128, refuses, sets_tos, translates, by_packet, forges, open, expires, keeps;
	uint32_t next[NEXT], next_count, limit, every, bucket, bucket_ms, delay_us, quote, seen;
	uint32_t refuse_code, expire_code;
	uint64_t full_ns; /* of the bucket: the time at which it has all its tokens */
	uint32_t labels[LABELS], label_count;
	uint8_t tos;
	uint16_t nat_port;
};

struct waiting {
	uint64_t at_ns;
	uint32_t length;
	uint8_t data[PACKET];
};

static struct router routers[ROUTERS];
static uint32_t router_count;
static struct waiting *waiting;
static uint32_t waiting_count;
static int tun;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------------------ input */

static void fail(const char *why, const char *what)
{
	fprintf(stderr, "fake_routes: %s: %s\n", why, what);
	exit(1);
}

static bool read_address(uint8_t *address, const char *text)
{
	const bool six = strchr(text, ':');

	if (inet_pton(six ? AF_INET6 : AF_INET, text, address) != 1)
		fail("no address", text);
	return six;
}

static void read_label(struct router *r, const char *text)
{
	unsigned label, class, ttl;

	if (sscanf(text, "%u:%u:%u", &label, &class, &ttl) != 3 || r->label_count == LABELS)
		fail("no label", text);
	r->labels[r->label_count++] = label << 12 | class << 9 | ttl;
}

static void read_word(struct router *r, const char *word)
{
	const char *value = strchr(word, '=');
	const size_t length = value ? (size_t)(value++ - word) : strlen(word);
	const uint32_t number = value ? (uint32_t)atoi(value) : 0;

#define IS(name) (length == sizeof(name) - 1 && !memcmp(word, name, length))
	if (IS("silent"))
		r->silent = true;
	else if (IS("source"))
		read_address(r->source, value);
	else if (IS("limit"))
		r->limit = number;
	else if (IS("every"))
		r->every = number;
	else if (IS("bucket"))
		r->bucket = number, r->bucket_ms = (uint32_t)atoi(strchr(value, ':') + 1);
	else if (IS("delay"))
		r->delay_us = number;
	else if (IS("twice"))
		r->twice = true;
	else if (IS("quote"))
		r->quote = number;
	else if (IS("mpls"))
		read_label(r, value);
	else if (IS("pad128"))
		r->pad128 = true;
	else if (IS("refuse"))
		r->refuses = true, r->refuse_code = number;
	else if (IS("expire"))
		r->expires = true, r->expire_code = number;
	else if (IS("tos"))
		r->sets_tos = true, r->tos = (uint8_t)number;
	else if (IS("nat"))
		r->translates = true, read_address(r->nat, value);
	else if (IS("keeps"))
		r->keeps = true;
	else if (IS("natport"))
		r->nat_port = (uint16_t)number;
	else if (IS("packets"))
		r->by_packet = true;
	else if (IS("forge"))
		r->forges = true;
	else if (IS("open"))
		r->open = true;
	else
		fail("no such word", word);
#undef IS
}

static void read_line(char *line)
{
	struct router *r = &routers[router_count];
	char *rest = NULL, *word = strtok_r(line, " \n", &rest);
	bool arrow = false;

	if (!word)
		return;
	if (router_count++ == ROUTERS)
		fail("too many routers", word);
	snprintf(r->id, sizeof r->id, "%s", word);
	word = strtok_r(NULL, " \n", &rest);
	if (!word)
		fail("no address", r->id);
	r->six = read_address(r->address, word);
	memcpy(r->source, r->address, 16);
	r->quote = QUOTE;
	while ((word = strtok_r(NULL, " \n", &rest))) {
		if (!strcmp(word, "->"))
			arrow = true;
		else if (!arrow)
			read_word(r, word);
		else if (r->next_count == NEXT)
			fail("too many next hops", r->id);
		else
			snprintf(r->next_ids[r->next_count++], sizeof r->id, "%s", word);
	}
}

static void resolve(void)
{
	for (uint32_t i = 0; i < router_count; i++)
		for (uint32_t j = 0; j < routers[i].next_count; j++) {
			uint32_t k = 0;

			while (k < router_count && strcmp(routers[k].id, routers[i].next_ids[j]))
				k++;
			if (k == router_count)
				fail("no such router", routers[i].next_ids[j]);
			routers[i].next[j] = k;
		}
}

/* ---------------------------------------------------------------------------------------------------------- packets */

static uint32_t sum_add(uint32_t sum, const uint8_t *at, uint32_t length)
{
	for (uint32_t i = 0; i + 1 < length; i += 2)
		sum += load_be16(at + i);
	if (length & 1)
		sum += (uint32_t)at[length - 1] << 8;
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

/* The fields that routers hash: addresses, protocol, and the first four bytes of the transport header (ports; type,
 * code and checksum). */
static uint64_t flow_of(const uint8_t *ip, bool six)
{
	const uint8_t *transport = ip + (six ? 40 : 20);
	uint64_t flow = six ? ip[6] : ip[9];

	for (int i = 0; i < (six ? 32 : 8); i++)
		flow = mix(flow) + ip[(six ? 8 : 12) + i];
	return mix(flow) + load_be32(transport);
}

static void emit(const uint8_t *packet, uint32_t length, uint32_t delay_us)
{
	if (!delay_us) {
		if (write(tun, packet, length) < 0)
			perror("fake_routes: write");
		return;
	}
	if (waiting_count == WAITING)
		return;
	waiting[waiting_count].at_ns = now_ns() + delay_us * 1000ull;
	waiting[waiting_count].length = length;
	memcpy(waiting[waiting_count++].data, packet, length);
}

/* An IP header around `length` bytes of transport that stand behind it already. */
static uint32_t wrap(uint8_t *out, bool six, const uint8_t *from, const uint8_t *to, uint8_t proto, uint32_t length)
{
	const uint32_t header = six ? 40 : 20;

	memset(out, 0, header);
	if (six) {
		out[0] = 0x60;
		store_be16(out + 4, (uint16_t)length);
		out[6] = proto;
		out[7] = 60;
		memcpy(out + 8, from, 16);
		memcpy(out + 24, to, 16);
	} else {
		out[0] = 0x45;
		store_be16(out + 2, (uint16_t)(header + length));
		out[8] = 60;
		out[9] = proto;
		memcpy(out + 12, from, 4);
		memcpy(out + 16, to, 4);
		store_be16(out + 10, fold(sum_add(0, out, 20)));
	}
	return header + length;
}

static void checksum(uint8_t *out, bool six, uint8_t proto, uint32_t length, uint32_t at)
{
	uint8_t *transport = out + (six ? 40 : 20);
	uint32_t sum = sum_add(0, transport, length);

	if (proto == IPPROTO_TCP || six)
		sum = sum_add(sum + proto + length, out + (six ? 8 : 12), six ? 32 : 8);
	store_be16(transport + at, fold(sum));
}

/* An ICMP error about `ip`, with the extensions that carry the router's labels. */
static void error_send(const struct router *r, const uint8_t *ip, uint32_t length, const uint8_t *to, bool unreachable,
		       uint8_t code)
{
	uint8_t out[PACKET] = { 0 }, *icmp = out + (r->six ? 40 : 20);
	uint32_t quoted = length < r->quote ? length : r->quote, end;

	icmp[0] = r->six ? (unreachable ? 1 : 3) : (unreachable ? 3 : 11);
	icmp[1] = code;
	memcpy(icmp + 8, ip, quoted);
	if (r->label_count || r->pad128)
		quoted = 128;
	end = 8 + quoted;
	if (r->label_count) {
		uint8_t *ext = icmp + end;
		const uint32_t size = 4 + 4 * r->label_count;

		icmp[r->six ? 4 : 5] = (uint8_t)(quoted / (r->six ? 8 : 4));
		ext[0] = 0x20;
		store_be16(ext + 4, (uint16_t)size);
		ext[6] = ext[7] = 1;
		for (uint32_t i = 0; i < r->label_count; i++)
			store_be32(ext + 8 + 4 * i, r->labels[i] | (i + 1 == r->label_count ? 0x100u : 0));
		store_be16(ext + 2, fold(sum_add(0, ext, 4 + size)));
		end += 4 + size;
	}
	wrap(out, r->six, r->source, to, r->six ? 58 : 1, end);
	checksum(out, r->six, r->six ? 58 : 1, end, 2);
	emit(out, (r->six ? 40 : 20) + end, r->delay_us);
	if (r->twice)
		emit(out, (r->six ? 40 : 20) + end, r->delay_us);
}

static void host_answer(const struct router *r, const uint8_t *ip, uint32_t length, const uint8_t *sender)
{
	const uint32_t header = r->six ? 40 : 20;
	const uint8_t *to = ip + (r->six ? 24 : 16), *in = ip + header, proto = r->six ? ip[6] : ip[9];
	uint8_t out[PACKET] = { 0 }, *transport = out + header;
	struct router self = *r;

	memcpy(self.source, to, r->six ? 16 : 4);
	if (proto == IPPROTO_UDP) {
		error_send(&self, ip, length, sender, true, r->six ? 4 : 3);
	} else if (proto == IPPROTO_TCP) {
		/* No host answers the reset by which the kernel refuses a SYN-ACK that it did not wait for. */
		if (in[13] & 0x04)
			return;
		store_be16(transport, load_be16(in + 2));
		store_be16(transport + 2, load_be16(in));
		store_be32(transport + 4, 77);
		store_be32(transport + 8, load_be32(in + 4) + 1);
		transport[12] = 0x50;
		transport[13] = r->open ? 0x12 : 0x14;
		wrap(out, r->six, to, sender, proto, 20);
		checksum(out, r->six, proto, 20, 16);
		emit(out, header + 20, r->delay_us);
	} else {
		memcpy(transport, in, length - header);
		transport[0] = r->six ? 129 : 0;
		store_be16(transport + 2, 0);
		wrap(out, r->six, to, sender, proto, length - header);
		checksum(out, r->six, proto, length - header, 2);
		emit(out, length, r->delay_us);
	}
}

static void translate(const struct router *r, uint8_t *ip)
{
	const uint32_t header = r->six ? 40 : 20, at = r->six ? 8 : 12, size = r->six ? 16 : 4;
	const uint8_t proto = r->six ? ip[6] : ip[9];
	uint8_t *field = ip + header + (proto == IPPROTO_UDP ? 6 : proto == IPPROTO_TCP ? 16 : 2);
	uint32_t sum = (uint16_t)~load_be16(field);

	if (proto == IPPROTO_ICMP) {
		memcpy(ip + at, r->nat,
		       size); /* its checksum covers no addresses; the identifier stays, as there is one host only */
		return;
	}
	for (uint32_t i = 0; i < size; i += 2)
		sum += (uint16_t)~load_be16(ip + at + i) + (uint32_t)load_be16(r->nat + i);
	memcpy(ip + at, r->nat, size);
	if (r->nat_port && (proto == IPPROTO_UDP || proto == IPPROTO_TCP)) {
		sum += (uint16_t)~load_be16(ip + header) + (uint32_t)(uint16_t)(load_be16(ip + header) + r->nat_port);
		store_be16(ip + header, (uint16_t)(load_be16(ip + header) + r->nat_port));
	}
	store_be16(field, fold(sum));
}

/* The answer comes through the translator again, which restores the quoted addresses, and not the checksum: the usual
 * defect. */
static void untranslate(uint8_t *ip, bool six, const uint8_t *sender)
{
	memcpy(ip + (six ? 8 : 12), sender, six ? 16 : 4);
}

static void forge(const struct router *r, const uint8_t *ip, uint32_t length, const uint8_t *sender)
{
	struct router forger = *r;
	uint8_t copy[PACKET];

	memcpy(copy, ip, length);
	forger.source[r->six ? 15 : 3] ^= 0x55;
	forger.quote = r->six ? 48 : 28;
	/* Hidden from an attacker beside the path: the number of the probe. */
	copy[4] ^= 0x40;
	copy[(r->six ? 40 : 20) + 6] ^= 0x40;
	error_send(&forger, copy, length, sender, false, 0);
}

static bool token_take(struct router *r)
{
	const uint64_t now = now_ns(), each = (uint64_t)r->bucket_ms * 1000000;
	const uint64_t full = r->full_ns > now ? r->full_ns : now;

	if (r->bucket && full + each > now + r->bucket * each)
		return false;
	r->full_ns = full + each;
	return true;
}

static void route(uint8_t *ip, uint32_t length)
{
	const bool six = ip[0] >> 4 == 6;
	const uint64_t flow = flow_of(ip, six);
	uint8_t sender[16] = { 0 };
	struct router *r = &routers[0];
	const uint16_t port = load_be16(ip + (six ? 40 : 20));
	bool translated = false;

	memcpy(sender, ip + (six ? 8 : 12), six ? 16 : 4);
	for (uint8_t ttl = ip[six ? 7 : 8]; r->next_count; ttl--) {
		r->seen++;
		if (ttl <= 1 || r->refuses) {
			if (r->silent || (r->limit && r->seen > r->limit) || (r->every && r->seen % r->every) ||
			    !token_take(r))
				return;
			ip[six ? 7 : 8] = 1;
			if (translated)
				untranslate(ip, six, sender);
			if (r->forges)
				forge(r, ip, length, sender);
			error_send(r, ip, length, sender, ttl > 1 || r->expires,
				   (uint8_t)(ttl > 1 ? r->refuse_code : r->expire_code));
			return;
		}
		if (r->sets_tos && !six)
			ip[1] = r->tos;
		if (r->translates) {
			translate(r, ip);
			translated = !r->keeps;
		}
		r = &routers[r->next[(r->by_packet ? r->seen : mix(flow ^ mix((uint64_t)(r - routers) + 1))) %
				     r->next_count]];
	}
	if (translated)
		untranslate(ip, six, sender);
	if ((six ? ip[6] : ip[9]) == IPPROTO_TCP) /* the source of a segment is restored by each translator */
		store_be16(ip + (six ? 40 : 20), port);
	if (!r->silent)
		host_answer(r, ip, length, sender);
}

static int flush_due(void)
{
	uint64_t first = UINT64_MAX;
	const uint64_t now = now_ns();

	for (uint32_t i = 0; i < waiting_count;) {
		if (waiting[i].at_ns <= now) {
			emit(waiting[i].data, waiting[i].length, 0);
			waiting[i] = waiting[--waiting_count];
			continue;
		}
		if (waiting[i].at_ns < first)
			first = waiting[i].at_ns;
		i++;
	}
	return first == UINT64_MAX ? -1 : (int)((first - now) / 1000000) + 1;
}

int main(int argc, char **argv)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	static uint8_t packet[PACKET];
	char line[8192];

	if (argc != 2)
		return 2;
	while (fgets(line, sizeof line, stdin) && line[0] != '\n')
		read_line(line);
	resolve();
	waiting = malloc(WAITING * sizeof *waiting);
	tun = open("/dev/net/tun", O_RDWR);
	snprintf(request.ifr_name, sizeof request.ifr_name, "%s", argv[1]);
	if (!waiting || tun < 0 || ioctl(tun, TUNSETIFF, &request) < 0) {
		perror("fake_routes: /dev/net/tun");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct pollfd ready = { .fd = tun, .events = POLLIN };
		ssize_t n;

		poll(&ready, 1, flush_due());
		if (!(ready.revents & POLLIN))
			continue;
		n = read(tun, packet, sizeof packet);
		/* Packets of the host itself, as neighbour and multicast traffic, have a hop limit that does not run
		 * out, or another version than the routers. */
		if (n >= 40 && packet[0] >> 4 == (routers[0].six ? 6 : 4) &&
		    (packet[0] >> 4 == 4 || packet[24] != 0xff))
			route(packet, (uint32_t)n);
	}
}
