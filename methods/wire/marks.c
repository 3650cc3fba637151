/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "marks.h"

enum { ECN = 3, CE = 3 };

static void add(struct marks *m, uint8_t tos, uint64_t packets)
{
	for (int i = 0; i < MARKS_KINDS; i++)
		if (!m->packets[i] || m->tos[i] == tos) {
			m->tos[i] = tos;
			m->packets[i] += packets;
			return;
		}
	m->other += packets;
}

void marks_count(struct marks *m, uint8_t tos)
{
	add(m, tos, 1);
}

void marks_add(struct marks *m, const struct marks *more)
{
	for (int i = 0; i < MARKS_KINDS && more->packets[i]; i++)
		add(m, more->tos[i], more->packets[i]);
	m->other += more->other;
}

void marks_compare(struct marks_changed *c, const struct marks *m, uint8_t sent)
{
	uint64_t most_dscp = 0, most_ecn = 0;

	*c = (struct marks_changed){ .received = m->other };
	for (int i = 0; i < MARKS_KINDS && m->packets[i]; i++) {
		const uint8_t tos = m->tos[i], ecn = tos & ECN;
		const uint64_t n = m->packets[i];

		c->received += n;
		if (tos >> 2 != sent >> 2) {
			c->dscp += n;
			if (n > most_dscp) {
				most_dscp = n;
				c->new_dscp = tos >> 2;
			}
		}
		if (ecn != (sent & ECN) && !(ecn == CE && sent & ECN)) {
			c->ecn += n;
			if (n > most_ecn) {
				most_ecn = n;
				c->new_ecn = ecn;
			}
		}
	}
}
