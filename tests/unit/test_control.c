/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "control.h"
#include "flow_packets.h"
#include "flow_sample.h"

#include <errno.h>
#include <stdlib.h>

struct two {
	struct control_keys client, server;
	struct hmac_key token;
	uint8_t theirs[CONTROL_PREFACE], ours[CONTROL_PREFACE];
};

static void meet(struct two *t, const char *client_token, const char *server_token, uint8_t nonce)
{
	struct control_preface c = { .kind = CONTROL_CLIENT, .version = CONTROL_VERSION, .nonce = { 1, 2, 3 } };
	struct control_preface s = { .kind = CONTROL_SERVER, .version = CONTROL_VERSION, .nonce = { nonce } };

	control_preface_write(t->ours, &c);
	control_preface_write(t->theirs, &s);
	hmac_key_set(&t->token, client_token, strlen(client_token));
	control_keys_derive(&t->client, &t->token, t->ours, t->theirs, false);
	hmac_key_set(&t->token, server_token, strlen(server_token));
	control_keys_derive(&t->server, &t->token, t->ours, t->theirs, true);
}

static uint32_t seal(struct control_keys *keys, uint8_t *out, uint8_t type, const char *body)
{
	memcpy(out + CONTROL_HEAD, body, strlen(body));
	return control_seal(keys, out, type, (uint32_t)strlen(body));
}

TEST(prefaces)
{
	struct control_preface p = { .kind = CONTROL_DATA,
				     .version = 9,
				     .session = 0x01020304,
				     .flow = 77,
				     .cookie = { 1, 2, 3, [15] = 16 } },
			       q;
	uint8_t bytes[CONTROL_PREFACE];

	control_preface_write(bytes, &p);
	assert_memory_equal(bytes, "ktrxerD\x09\x01\x02\x03\x04\x00\x00\x00\x4d\x01\x02\x03", 19);
	assert_int_equal(control_preface_read(&q, bytes, sizeof bytes), 0);
	assert_memory_equal(&p.session, &q.session, sizeof p - offsetof(struct control_preface, session));
	for (size_t n = 0; n < sizeof bytes; n++)
		assert_int_equal(control_preface_read(&q, bytes, n), -EPROTO);
	bytes[6] = 'X';
	assert_int_equal(control_preface_read(&q, bytes, sizeof bytes), -EPROTO);
	bytes[6] = 'D';
	bytes[0] = 'K';
	assert_int_equal(control_preface_read(&q, bytes, sizeof bytes), -EPROTO);
}

TEST(a_frame_comes_through_once)
{
	struct control_frame frame;
	uint8_t wire[256];
	struct two t;
	uint32_t n, taken;

	meet(&t, "a token", "a token", 1);
	n = seal(&t.client, wire, CONTROL_REQUEST, "words");
	for (uint32_t have = 0; have < n; have++) {
		assert_int_equal(control_open(&t.server, wire, have, 100, &frame, &taken), 0);
		assert_int_equal(taken, 0);
	}
	assert_int_equal(control_open(&t.server, wire, sizeof wire, 100, &frame, &taken), 1);
	assert_true(taken == n && frame.sealed && frame.type == CONTROL_REQUEST && frame.length == 5);
	assert_memory_equal(frame.body, "words", 5);
	/* The same again is out of its place. */
	assert_int_equal(control_open(&t.server, wire, n, 100, &frame, &taken), -EBADMSG);
	/* A frame of one end is no frame for the same end. */
	n = seal(&t.client, wire, CONTROL_PING, "12345678");
	assert_int_equal(control_open(&t.client, wire, n, 100, &frame, &taken), -EBADMSG);
	assert_int_equal(control_open(&t.server, wire, n, 7, &frame, &taken), -EMSGSIZE);
	assert_int_equal(control_open(&t.server, wire, n, 8, &frame, &taken), 1);
}

TEST(every_bit_counts)
{
	uint8_t wire[256];
	struct two t;
	uint32_t n, taken;

	meet(&t, "a token", "a token", 1);
	n = seal(&t.client, wire, CONTROL_STOP, "words");
	for (uint32_t bit = 0; bit < n * 8; bit++) {
		struct control_frame frame;
		int rc;

		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
		rc = control_open(&t.server, wire, n, 100, &frame, &taken);
		assert_true(rc == -EBADMSG || rc == -EMSGSIZE || rc == 0); /* 0: a longer length */
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

TEST(keys_belong_to_one_meeting)
{
	struct two first, again, other;
	struct control_frame frame;
	uint8_t wire[256], a[CONTROL_COOKIE], b[CONTROL_COOKIE];
	uint32_t n, taken;

	meet(&first, "a token", "a token", 1);
	meet(&again, "a token", "a token", 2); /* the server's nonce alone is another */
	meet(&other, "a token", "another token", 1);
	n = seal(&first.client, wire, CONTROL_REQUEST, "words");
	assert_int_equal(control_open(&again.server, wire, n, 100, &frame, &taken), -EBADMSG);
	assert_int_equal(control_open(&other.server, wire, n, 100, &frame, &taken), -EBADMSG);
	/* A client accepts a refusal that any server made, and marks it; a server accepts none. */
	n = seal(&other.server, wire, CONTROL_REFUSE, "012345678");
	assert_int_equal(control_open(&other.client, wire, n, 100, &frame, &taken), 1);
	assert_false(frame.sealed);
	/* One that is not sealed says nothing of the keys, and the client reads it all the same. */
	memcpy(wire + CONTROL_HEAD, "012345678", 9);
	n = control_seal_none(wire, CONTROL_REFUSE, 9);
	for (int i = 0; i < CONTROL_MAC; i++)
		assert_int_equal(wire[n - CONTROL_MAC + (uint32_t)i], 0);
	assert_int_equal(control_open(&first.client, wire, n, 100, &frame, &taken), 1);
	assert_true(!frame.sealed && frame.length == 9);
	n = seal(&other.client, wire, CONTROL_REFUSE, "012345678");
	assert_int_equal(control_open(&other.server, wire, n, 100, &frame, &taken), -EBADMSG);
	control_cookie(&first.client, 1, 2, a);
	control_cookie(&first.server, 1, 2, b);
	assert_memory_equal(a, b, sizeof a);
	control_cookie(&first.server, 1, 3, b);
	assert_memory_not_equal(a, b, sizeof a);
	control_cookie(&again.server, 1, 2, b);
	assert_memory_not_equal(a, b, sizeof a);
}

static struct control_frame as_frame(const uint8_t *body, uint32_t length)
{
	return (struct control_frame){ .body = body, .length = length, .sealed = true };
}

TEST(a_request)
{
	struct control_request r = { .flows = 3,
				     .for_ns = 10,
				     .bytes = 11,
				     .whole_ns = 12,
				     .sample_ns = 13,
				     .rate_bps = 14,
				     .cc_count = 2,
				     .ccs = { "cubic", "bbr" } },
			       q;
	uint8_t body[CONTROL_FIRST_MAX];
	uint32_t n;
	struct control_frame f;

	n = control_request_write(body, &r);
	f = as_frame(body, n);
	assert_int_equal(control_request_read(&q, &f), 0);
	assert_memory_equal(&r, &q, sizeof r);
	for (f.length = 0; f.length < n; f.length++)
		assert_int_equal(control_request_read(&q, &f), -EPROTO);
	f.length = n + 4; /* a later version says more */
	assert_int_equal(control_request_read(&q, &f), 0);
	for (int i = 0; i < 5; i++) {
		static const char *const bad[] = { "", "a b", "a/b", "0123456789abcdef", "a\n" };

		memset(r.ccs[1], 0, FLOW_CC_MAX);
		memcpy(r.ccs[1], bad[i], strlen(bad[i]));
		f.length = control_request_write(body, &r);
		assert_int_equal(control_request_read(&q, &f), -EPROTO);
	}
	r.cc_count = 0;
	r.flows = 0;
	f.length = control_request_write(body, &r);
	assert_int_equal(control_request_read(&q, &f), -EPROTO);
	body[4 + 5 * 8] = CONTROL_CCS + 1;
	assert_int_equal(control_request_read(&q, &f), -EPROTO);
	r.flows = 1;
	r.sample_ns = UINT64_MAX; /* times would pass it at once, again and again */
	f.length = control_request_write(body, &r);
	assert_int_equal(control_request_read(&q, &f), -EPROTO);
	r.sample_ns = 3600ULL * 1000000000;
	f.length = control_request_write(body, &r);
	assert_int_equal(control_request_read(&q, &f), 0);
	r.for_ns = r.bytes = 0; /* without end */
	f.length = control_request_write(body, &r);
	assert_int_equal(control_request_read(&q, &f), -EPROTO);
}

TEST(flows)
{
	struct control_request r = { .flows = 2, .cc_count = 1, .ccs = { "reno" } };
	struct flow_spec in[2] = {
		{ .down = true, .tos = 0xb8, .cc_index = 1, .cc = "reno", .start_ns = 5, .rate_bps = 6 },
		{ .udp = true, .tos = 2, .model = FLOW_VOIP, .rate_bps = 64000, .payload_min = 24, .payload_max = 200 }
	};
	struct flow_spec out[CONTROL_RECORDS];
	uint8_t body[CONTROL_BODY_MAX];
	struct control_frame f = as_frame(body, control_flows_write(body, 7, 2, in));
	uint32_t first;

	assert_int_equal(f.length, 6 + 2 * CONTROL_RECORD);
	assert_int_equal(control_flows_read(out, &first, &f, &r), 2);
	assert_int_equal(first, 7);
	assert_memory_equal(in, out, sizeof in);
	for (uint32_t n = f.length; f.length-- > 0;)
		assert_true(control_flows_read(out, &first, &f, &r) == -EPROTO || n == 0);
	for (int i = 0; i < 6; i++) {
		struct flow_spec bad = in[1];

		if (i == 0)
			bad.cc_index = 2;
		else if (i == 1)
			bad.model = FLOW_MODELS;
		else if (i == 2)
			bad.rate_bps = 0;
		else if (i == 3)
			bad.payload_min = FLOW_PACKET_HEAD - 1;
		else if (i == 4)
			bad.payload_max = 23;
		else
			bad.start_ns = UINT64_MAX;
		f.length = control_flows_write(body, 0, 1, &bad);
		assert_int_equal(control_flows_read(out, &first, &f, &r), -EPROTO);
	}
}

TEST(trains)
{
	const struct control_request r = { .flows = 1 };
	const struct flow_spec in = { .udp = true,
				      .model = FLOW_TRAIN,
				      .rate_bps = 8000000,
				      .payload_min = 100,
				      .payload_max = 900,
				      .train = 2,
				      .train_shrink = 3,
				      .train_gap_ns = 200000 };
	struct flow_spec out, bad = in;
	uint8_t body[CONTROL_BODY_MAX];
	struct control_frame f = as_frame(body, control_flows_write(body, 0, 1, &in));
	uint32_t first;

	assert_int_equal(control_flows_read(&out, &first, &f, &r), 1);
	assert_memory_equal(&in, &out, sizeof in);
	bad.train_gap_ns = 600000; /* longer than half of the time between trains */
	f.length = control_flows_write(body, 0, 1, &bad);
	assert_int_equal(control_flows_read(&out, &first, &f, &r), -EPROTO);
}

TEST(packets_of_trains)
{
	const struct flow_packet in[] = { { 0, 5000000000ull, FLOW_PACKET_ARRIVED },
					  { 1, 4999999000ull, FLOW_PACKET_SENT },
					  { 7, UINT64_MAX, FLOW_PACKET_COMMITTED },
					  { 3, 0, FLOW_PACKET_ARRIVED } };
	struct flow_packets before = { 0 };
	struct flow_packet out;
	uint8_t block[4 * FLOW_PACKET_RECORD_MOST];
	struct bytes b;
	uint32_t length = 0, flow;

	for (uint32_t i = 0; i < 4; i++)
		length += flow_packet_write(block + length, i, &in[i], &before);
	b = bytes_of(block, length);
	before = (struct flow_packets){ 0 };
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(flow_packet_read(&b, 4, &flow, &out, &before), 1);
		assert_int_equal(flow, i);
		assert_true(out.number == in[i].number && out.time_ns == in[i].time_ns && out.kind == in[i].kind);
	}
	assert_int_equal(flow_packet_read(&b, 4, &flow, &out, &before), 0);
	/* A flow that there is not, an unknown kind, and a block that ends inside a record. */
	b = bytes_of(block, length);
	assert_int_equal(flow_packet_read(&b, 0, &flow, &out, &before), -EPROTO);
	block[1] = FLOW_PACKET_KINDS;
	b = bytes_of(block, length);
	assert_int_equal(flow_packet_read(&b, 4, &flow, &out, &before), -EPROTO);
	b = bytes_of(block, 3);
	assert_int_equal(flow_packet_read(&b, 4, &flow, &out, &before), -EPROTO);
}

TEST(last_words)
{
	struct flow_end end = { .reason = FLOW_BROKEN,
				.error = FLOW_RESET,
				.time_ns = 1,
				.bytes = 2,
				.packets = 3,
				.missed = 4,
				.waited = 5,
				.idle = 6,
				.first_ns = 7,
				.ecn_seen = FLOW_ECN_SEEN,
				.ce_segments = 8,
				.ce_first_ns = 9,
				.marks = { { 2, 3, 184 }, { 10, 11, 12 }, 13 },
				.moves = 14 },
			back = { 0 };
	struct control_refuse refuse = { CONTROL_TOO_FAST, 1000 }, again;
	struct control_pong pong = { 1, 2, 3 }, gnop;
	struct control_port ports[2] = { { 1, 2 }, { 3, 4 } }, strop[2];
	uint8_t body[CONTROL_FIRST_MAX];
	struct control_frame f = as_frame(body, control_flow_end_write(body, 9, &end));
	uint32_t flow;

	assert_int_equal(control_flow_end_read(&flow, &back, &f), 0);
	assert_true(flow == 9 && back.reason == end.reason && back.error == end.error && back.time_ns == 1 &&
		    back.bytes == 2 && back.packets == 3 && back.missed == 4 && back.waited == 5 && back.idle == 6 &&
		    back.first_ns == 7 && back.ecn_seen == FLOW_ECN_SEEN && back.ce_segments == 8 &&
		    back.ce_first_ns == 9);
	assert_memory_equal(&back.marks, &end.marks, sizeof end.marks);
	assert_int_equal(back.moves, 14);
	f.length -= 4; /* of versions without the last fields */
	assert_int_equal(control_flow_end_read(&flow, &back, &f), 0);
	assert_true(back.marks.other == 13 && !back.moves);
	f.length -= 8 * (MARKS_KINDS + 1) + MARKS_KINDS;
	assert_int_equal(control_flow_end_read(&flow, &back, &f), 0);
	assert_true(back.ce_first_ns == 9 && !back.marks.packets[0]);
	f.length -= 8 + 4 + 1;
	assert_int_equal(control_flow_end_read(&flow, &back, &f), 0);
	assert_true(back.first_ns == 7 && !back.ecn_seen && back.ce_segments == UINT32_MAX);
	f.length -= 8;
	assert_int_equal(control_flow_end_read(&flow, &back, &f), 0);
	assert_true(back.idle == 6 && !back.first_ns);
	f.length -= 4;
	assert_int_equal(control_flow_end_read(&flow, &back, &f), 0);
	assert_true(back.waited == 5 && back.idle == UINT32_MAX);
	f.length -= 4;
	assert_int_equal(control_flow_end_read(&flow, &back, &f), 0);
	assert_true(back.missed == 4 && back.waited == UINT32_MAX);
	body[4] = FLOW_REASONS;
	assert_int_equal(control_flow_end_read(&flow, &back, &f), -EPROTO);
	f.length = control_refuse_write(body, &refuse);
	assert_int_equal(control_refuse_read(&again, &f), 0);
	assert_true(again.why == CONTROL_TOO_FAST && again.value == 1000);
	f.length = control_pong_write(body, &pong);
	assert_int_equal(control_pong_read(&gnop, &f), 0);
	assert_memory_equal(&pong, &gnop, sizeof pong);
	f.length = control_ports_write(body, 2, ports);
	assert_int_equal(control_ports_read(strop, 2, &f), 2);
	assert_true(strop[1].flow == 3 && strop[1].port == 4);
	assert_int_equal(control_ports_read(strop, 1, &f), -EPROTO);
	f.length--;
	assert_int_equal(control_ports_read(strop, 2, &f), -EPROTO);
}

/* ---------------------------------------------------------------------------------------------------------- samples */

TEST(samples)
{
	struct flow_history written, read_back;
	uint8_t block[4 * FLOW_SAMPLE_MOST + FLOW_SAMPLES_HEAD];
	struct flow_sample in[4] = { { .time_ns = 1000000, .bytes = 0 },
				     { .time_ns = 1000500, .bytes = UINT64_MAX, .kind = FLOW_TCP },
				     { .time_ns = 2000000, .bytes = 5000000000ull, .kind = FLOW_UDP },
				     { .time_ns = 3000000, .bytes = 127 } };
	const uint32_t flow[4] = { 0, 1, 2, 0 };
	struct flow_sample out;
	struct bytes b;
	uint64_t base;
	uint32_t n, which;

	assert_int_equal(flow_history_new(&written, 3), 0);
	assert_int_equal(flow_history_new(&read_back, 3), 0);
	for (int i = 0; i < FLOW_TCP_VALUES; i++)
		in[1].values[i] = i % 3 == 0 ? UINT64_MAX : i % 3 == 1 ? UINT64_MAX - 1 : (uint64_t)i;
	n = flow_samples_begin(block, in[0].time_ns);
	for (int i = 0; i < 4; i++)
		n += flow_sample_write(block + n, in[0].time_ns, flow[i], &in[i], &written);
	assert_int_equal(flow_samples_open(&b, block, n, &base), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(flow_sample_read(&b, base, &which, &out, &read_back), 1);
		assert_int_equal(which, flow[i]);
		assert_memory_equal(&out, &in[i], sizeof out);
	}
	assert_int_equal(flow_sample_read(&b, base, &which, &out, &read_back), 0);
	/* Cut anywhere: what is whole is read, then it is an error. */
	for (uint32_t cut = 0; cut < n; cut++) {
		int rc = flow_samples_open(&b, block, cut, &base);

		if (cut < FLOW_SAMPLES_HEAD) {
			assert_int_equal(rc, -EPROTO);
			continue;
		}
		while ((rc = flow_sample_read(&b, base, &which, &out, &read_back)) == 1)
			;
		assert_true(rc == 0 || rc == -EPROTO);
	}
	flow_history_free(&written);
	flow_history_free(&read_back);
}

TEST(samples_of_no_flow)
{
	static const uint8_t unknown_flow[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },
			     unknown_kind[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0 },
			     too_long[] = { 0,    0,    0,    0,    0,    0,    0, 0, 0x80, 0x80, 0x80,
					    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0, 0,    0 };
	struct flow_history read_back;
	struct flow_sample out;
	struct bytes b;
	uint64_t base;
	uint32_t which;

	assert_int_equal(flow_history_new(&read_back, 1), 0);
	flow_samples_open(&b, unknown_flow, sizeof unknown_flow, &base);
	assert_int_equal(flow_sample_read(&b, base, &which, &out, &read_back), -EPROTO);
	flow_samples_open(&b, unknown_kind, sizeof unknown_kind, &base);
	assert_int_equal(flow_sample_read(&b, base, &which, &out, &read_back), -EPROTO);
	flow_samples_open(&b, too_long, sizeof too_long, &base);
	assert_int_equal(flow_sample_read(&b, base, &which, &out, &read_back), -EPROTO);
	flow_history_free(&read_back);
}
