/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Both ends of the control protocol, against an end that has the token and sends any bytes. First byte: which end
 * receives; then frames, each one byte of type, two of length, its body. A length whose highest bit is set is sent as
 * it is, without a HMAC. Type 0xf0 to the server is no frame: the flow of that number is registered, as its datagram
 * would do it. No loop runs, so no time passes; what comes is all there is.
 */
#include "control_link.h"
#include "flow_client.h"
#include "flow_packets.h"
#include "serve_control.h"
#include "serve_session.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct loop *loop;
	struct hmac_key token;
	bool gone;
	struct serve_control *control;
	struct session *session;
};

static void bodies(const uint8_t *data, size_t size)
{
	const struct control_frame f = { .body = data, .length = (uint32_t)size, .sealed = true };
	struct control_preface preface;
	struct control_request request;
	struct control_grant grant;
	struct control_refuse refuse;
	struct control_pong pong;
	struct control_port ports[8];
	struct flow_spec specs[CONTROL_RECORDS];
	struct flow_history history;
	struct flow_sample sample;
	struct flow_packets before = { 0 };
	struct flow_packet packet;
	struct flow_end end;
	struct bytes block;
	uint64_t ns;
	uint32_t flow;

	if (control_preface_read(&preface, data, size) == 0) {
		uint8_t again[CONTROL_PREFACE];

		control_preface_write(again, &preface);
		if (memcmp(again, data, sizeof again) != 0)
			abort();
	}
	if (control_request_read(&request, &f) == 0) {
		uint8_t again[CONTROL_FIRST_MAX];

		if (control_request_write(again, &request) > size)
			abort();
		control_flows_read(specs, &flow, &f, &request);
	}
	request = (struct control_request){ .flows = 1 };
	if (control_flows_read(specs, &flow, &f, &request) > CONTROL_RECORDS)
		abort();
	control_grant_read(&grant, &f);
	control_refuse_read(&refuse, &f);
	control_pong_read(&pong, &f);
	control_time_read(&ns, &f);
	control_ports_read(ports, 8, &f);
	control_flow_end_read(&flow, &end, &f);
	if (flow_history_new(&history, 4) < 0)
		abort();
	if (flow_samples_open(&block, data, size, &ns) == 0)
		while (flow_sample_read(&block, ns, &flow, &sample, &history) > 0)
			if (flow >= 4 || sample.kind >= FLOW_SAMPLE_KINDS)
				abort();
	flow_history_free(&history);
	block = bytes_of(data, size);
	while (flow_packet_read(&block, 4, &flow, &packet, &before) > 0)
		if (flow >= 4 || packet.kind >= FLOW_PACKET_KINDS)
			abort();
}

static void datagram(struct world *w, const struct control_keys *keys, uint8_t flow)
{
	struct control_preface p = {
		.kind = CONTROL_DATAGRAM, .version = CONTROL_VERSION, .session = w->session->id, .flow = flow
	};
	uint8_t bytes[CONTROL_PREFACE + 32] = { 0 };
	struct serve_datagram d = { .data = bytes,
				    .length = CONTROL_PREFACE,
				    .whole = CONTROL_PREFACE,
				    .arrival = { .from = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } },
						 .from_port = 1000u + flow } };

	control_cookie(keys, p.session, p.flow, p.cookie);
	control_preface_write(bytes, &p);
	serve_control_claim(w->control, &d);
	memcpy(bytes, p.cookie, 8);
	bytes[15] = flow;
	d.length = d.whole = sizeof bytes;
	serve_control_claim(w->control, &d);
}

/* Frames from the fuzzer, sealed as the other end would, until the link is gone. */
static void talk(struct world *w, struct control_link *link, struct control_keys *keys, struct bytes *b)
{
	static uint8_t wire[CONTROL_HEAD + 65536 + CONTROL_MAC];

	while (bytes_left(b) >= 3 && !w->gone) {
		const uint8_t type = bytes_u8(b);
		const uint16_t word = bytes_be16(b);
		uint32_t length = word & 0x7fff;

		if (length > bytes_left(b))
			length = (uint32_t)bytes_left(b);
		if (length)
			memcpy(wire + CONTROL_HEAD, bytes_take(b, length), length);
		if (type == 0xf0 && w->session) {
			datagram(w, keys, length ? wire[CONTROL_HEAD] : 0);
			continue;
		}
		if (word & 0x8000) {
			wire[0] = type;
			length += CONTROL_HEAD;
		} else {
			length = control_seal(keys, wire, type, length);
		}
		/* A frame may arrive in two pieces. */
		if (!control_link_feed(link, wire, length / 2) || w->gone)
			return;
		if (!control_link_feed(link, wire + length / 2, length - length / 2))
			return;
	}
}

static void server(struct world *w, struct bytes *b)
{
	const struct serve_control_options o = { .token = &w->token,
						 .max_clients = 2,
						 .max_flows = 300,
						 .max_ns = 1000000000000ull,
						 .max_bps = 1000000000,
						 .dscp_granted = UINT64_MAX >> 16 };
	const struct ktrxer_addr peer = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
	struct control_preface hello = { .kind = CONTROL_CLIENT, .version = CONTROL_VERSION };
	uint8_t mine[CONTROL_PREFACE], theirs[CONTROL_PREFACE];
	struct serve_control *control;
	struct control_keys keys;
	struct session *session;
	int fds[2];

	if (serve_control_new(&control, w->loop, &o, NULL) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
		abort();
	control_preface_write(mine, &hello);
	if (session_new(&session, serve_control_registry(control), fds[0], &peer, mine, &w->token) < 0)
		abort();
	registry_add(serve_control_registry(control), session);
	w->control = control;
	w->session = session;
	if (recv(fds[1], theirs, sizeof theirs, 0) != sizeof theirs)
		abort();
	control_keys_derive(&keys, &w->token, mine, theirs, false);
	talk(w, &session->link, &keys, b);
	close(fds[1]);
	serve_control_end(control);
	serve_control_free(control);
}

static void on_sample(void *context, uint32_t flow, const struct flow_sample *sample, const struct flow_origin *origin)
{
	(void)context;
	(void)origin;
	if (flow >= 4 || sample->kind >= FLOW_SAMPLE_KINDS)
		abort();
}

static void on_packet(void *context, uint32_t flow, bool remote, const struct flow_packet *packet)
{
	(void)context;
	(void)remote;
	if (flow != 3 || packet->kind >= FLOW_PACKET_KINDS)
		abort();
}

static void on_ended(void *context, uint32_t flow, bool remote, const struct flow_end *end)
{
	(void)context;
	(void)remote;
	if (flow >= 4 || end->reason >= FLOW_REASONS || end->error >= FLOW_ERRORS)
		abort();
}

static int describe(struct ktrxer_error *err, const struct flow_client_options *options,
		    const struct flow_failure *failure)
{
	(void)options;
	(void)failure;
	err->code = -EPROTO;
	err->text[0] = '\0';
	return err->code;
}

static void on_done(void *context)
{
	((struct world *)context)->gone = true;
}

/* A listener that never sends a byte. */
static uint16_t listener(int *fd)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof name;

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0 || bind(*fd, (struct sockaddr *)&name, length) != 0 || listen(*fd, 1) != 0 ||
	    getsockname(*fd, (struct sockaddr *)&name, &length) != 0)
		abort();
	return ntohs(name.sin_port);
}

static void client(struct world *w, struct bytes *b)
{
	/* clang-format off */
	static const struct flow_spec specs[4] = {
		{ .down = false },
		{ .down = true },
		{ .down = true, .udp = true, .rate_bps = 1000, .payload_min = 24, .payload_max = 24 },
		{ .down = true, .udp = true, .model = FLOW_TRAIN, .rate_bps = 1000, .payload_min = 24,
		  .payload_max = 24, .train = 2 },
	};
	/* clang-format on */
	int fd;
	const struct flow_client_options o = { .loop = w->loop,
					       .to = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } },
					       .port = listener(&fd),
					       .token = &w->token,
					       .specs = specs,
					       .request = { .flows = 4, .for_ns = 1000000000, .sample_ns = 1000000000 },
					       .sample = on_sample,
					       .ended = on_ended,
					       .packet = on_packet,
					       .done = on_done,
					       .describe = describe,
					       .context = w,
					       .cpu = -1 };
	struct control_preface hello = { .kind = CONTROL_SERVER, .version = CONTROL_VERSION };
	uint8_t theirs[CONTROL_PREFACE];
	struct flow_client *c;
	struct flow_client_result result;
	struct control_keys keys;
	struct ktrxer_error err;

	control_preface_write(theirs, &hello);
	if (flow_client_new(&c, &o, &err) == 0) {
		struct control_link *link = (struct control_link *)c;

		if (control_link_feed(link, theirs, sizeof theirs)) {
			/*
			 * The keys are what both ends know; here they are the client's own, with the roles exchanged.
			 */
			keys = link->keys;
			keys.server = true;
			keys.sent = 0;
			talk(w, link, &keys, b);
		}
		flow_client_stop(c);
		flow_client_result(c, &result);
	}
	flow_client_free(c);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = bytes_of(data, size);
	const uint8_t who = bytes_u8(&b);
	struct world w = { 0 };

	if (who % 4 == 0) {
		if (size > 1)
			bodies(data + 1, size - 1);
		return 0;
	}
	hmac_key_set(&w.token, "token", 5);
	if (loop_new(&w.loop) < 0)
		abort();
	if (who % 4 == 1)
		client(&w, &b);
	else
		server(&w, &b);
	loop_free(w.loop);
	return 0;
}
