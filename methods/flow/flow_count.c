/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_count.h"

#include <string.h>

static bool seen(const struct flow_count *c, uint64_t number)
{
	return c->seen[number / 64 % (FLOW_COUNT_WINDOW / 64)] >> number % 64 & 1;
}

static void see(struct flow_count *c, uint64_t number)
{
	c->seen[number / 64 % (FLOW_COUNT_WINDOW / 64)] |= 1ull << number % 64;
}

/* The window moves on: what enters it has not been seen. */
static void advance(struct flow_count *c, uint64_t number)
{
	if (number - c->next >= FLOW_COUNT_WINDOW) {
		memset(c->seen, 0, sizeof c->seen);
	} else {
		for (uint64_t n = c->next; n <= number; n++)
			c->seen[n / 64 % (FLOW_COUNT_WINDOW / 64)] &= ~(1ull << n % 64);
	}
	c->next = number + 1;
}

void flow_count_packet(struct flow_count *c, uint64_t number, uint32_t bytes, uint8_t tos)
{
	if (number >= c->next + FLOW_COUNT_LEAP) {
		c->protocol_errors++;
		return;
	}
	if (number >= c->next) {
		advance(c, number);
	} else if (number + FLOW_COUNT_WINDOW >= c->next && seen(c, number)) {
		c->duplicates++;
		return;
	} else {
		c->reordered++;
	}
	see(c, number);
	c->packets++;
	c->bytes += bytes;
	c->ect1 += (tos & 3) == 1;
	c->ect0 += (tos & 3) == 2;
	c->ce += (tos & 3) == 3;
	marks_count(&c->marks, tos);
}

uint64_t flow_count_lost(const struct flow_count *c, uint64_t sent)
{
	const uint64_t all = sent ? sent : c->next;

	return all > c->packets ? all - c->packets : 0;
}
