/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A server's segments, one after another: a byte of flags, what happens before, the offsets of sequence and
 * acknowledgement, a length, and so many bytes of data. The connection stays within its windows and arrays.
 */
#include "bytes.h"
#include "tcp_connection.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_send(void *context, struct tcp_connection *c, const struct tcp_segment *s, int probe, uint64_t at_ns)
{
	const uint64_t *now_ns = context;

	if (probe == TCP_CONTROL ? at_ns != 0 : at_ns < *now_ns)
		abort();
	/* Each byte can be read; the request is sent from its beginning. */
	for (uint32_t i = 0; i < s->length; i++)
		if (s->payload[i] != c->spec.request[(s->sequence - c->own_first + i) % c->spec.request_length])
			abort();
}

static void on_done(void *context, struct tcp_connection *c, const struct tcp_pair_done *pair)
{
	(void)context;
	if (c->answer_count > TCP_ANSWERS_MAX || (pair->doubt != TCP_NO_DOUBT && pair->result.up))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t request[64] = "GET / HTTP/1.1\r\n";
	uint64_t now_ns = KTRXER_NS_PER_S;
	struct tcp_connection *c = calloc(1, sizeof *c);
	struct bytes b = bytes_of(data, size);

	if (!c)
		return 0;
	c->spec = (struct tcp_connection_spec){ request, sizeof request, 300, KTRXER_NS_PER_S };
	c->calls = (struct tcp_connection_calls){ on_send, on_done, &now_ns };
	tcp_connection_open(c, 0xffffff00u, now_ns);
	while (bytes_left(&b) && c->phase != TCP_CLOSED) {
		const uint8_t flags = bytes_u8(&b), before = bytes_u8(&b);
		struct tcp_segment s = { .flags = flags, .window = 30000, .mss = 1000 };

		s.sequence = (flags & KTRXER_TCP_SYN ? 0 : c->peer_first + (uint32_t)c->peer_next) + bytes_be16(&b) -
			     0x8000u;
		s.acknowledgement = c->own_first + (uint32_t)c->own_acknowledged + bytes_u8(&b);
		s.length = bytes_be16(&b);
		if (s.length > bytes_left(&b))
			s.length = (uint32_t)bytes_left(&b);
		s.payload = bytes_take(&b, s.length);
		now_ns += (uint64_t)(before & 0x3f) * 10 * KTRXER_NS_PER_MS;
		if (now_ns >= c->timer_ns)
			tcp_connection_tick(c, now_ns);
		if (c->phase == TCP_READY && before & 0x40)
			tcp_connection_prime(c, now_ns);
		else if (c->phase == TCP_PRIMED && before & 0x40)
			tcp_connection_probe(c, now_ns);
		else if ((c->phase == TCP_PRIMING || c->phase == TCP_PRIMED) && before & 0x80)
			tcp_connection_skip(c, now_ns);
		if (c->phase != TCP_CLOSED)
			tcp_connection_receive(c, &s, now_ns);
		if (c->own_acknowledged > c->own_next || c->peer_next > c->edge || c->head_fill > TCP_HEAD_MAX ||
		    c->answer_count > TCP_ANSWERS_MAX)
			abort();
	}
	free(c);
	return 0;
}
