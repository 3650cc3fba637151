/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rules, samples and notes of all parts of `ktrxer bench receive`. */
#include "bench_receive.h"
#include "fields_bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct krx_rule *receive_rules(int exact, int wildcards, bool six)
{
	struct krx_rule *rules = calloc((size_t)(exact + wildcards) + 1, sizeof *rules);

	for (int i = 0; rules && i < exact + wildcards; i++) {
		struct krx_rule *r = &rules[i];
		uint8_t *last = r->from.bytes + (six ? 12 : 0);

		*r = (struct krx_rule){ .op = KRX_DROP, .proto = KTRXER_UDP, .to_port = 9 };
		r->from.family = r->to.family = six ? AF_INET6 : AF_INET;
		if (six) {
			memcpy(r->from.bytes, "\x20\x01\x0d\xb8\0\1", 6);
			memcpy(r->to.bytes, "\x20\x01\x0d\xb8\0\2\0\0\0\0\0\0\0\0\0\1", 16);
		} else {
			memcpy(r->to.bytes, "\x0a\x02\0\1", 4);
		}
		last[0] = 10;
		last[1] = 1;
		last[2] = (uint8_t)(i >> 8);
		last[3] = (uint8_t)i;
		r->from_prefix = r->to_prefix = six ? 128 : 32;
		r->from_port = (uint16_t)(1024 + i % 50000);
		if (i >= exact)
			r->from_port = 0; /* a wildcard: it is of the list that is asked one after another */
	}
	return rules;
}

struct json *receive_sample(struct receive_bench *b, const char *part, const char *what, int rules, int wildcards,
			    uint64_t round)
{
	struct json *sample = bench_sample(b->cli, part);

	if (!sample)
		return NULL;
	bench_rules_what(sample, what);
	bench_rules_rules(sample, rules);
	bench_rules_wildcards(sample, wildcards);
	bench_rules_round(sample, round);
	b->measured++;
	return sample;
}

void receive_note(struct receive_bench *b, const char *text)
{
	struct json *event = out_event(b->cli, "note");

	if (!event)
		return;
	bench_note_text(event, text);
	out_put(b->cli, event);
}
