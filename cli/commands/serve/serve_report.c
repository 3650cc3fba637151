/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `serve`: the lines of its beginning with the commands for clients, and the counts at its end. */
#include "base_limits.h"
#include "serve.h"

#include "fields_serve.h"
#include "shared_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

void server_figures(struct server *s, struct serve_figures *f)
{
	*f = (struct serve_figures){ 0 };
	if (KTRXER_SERVER_EXTRAS) {
		f->clients = registry_clients(serve_control_registry(s->control));
		f->pending = serve_control_pending(s->control);
		f->log_left_out = s->log.left_out;
		loop_figures(s->loop, &f->loop);
	}
	reflector_counts(s->reflector, &f->stamp);
	serve_control_counts(s->control, &f->flows);
	for (int i = 0; i < s->socket_count; i++) {
		struct serve_udp_counts one;

		serve_udp_counts(s->sockets[i], &one);
		f->sockets.received += one.received;
		f->sockets.sent += one.sent;
		f->sockets.refused += one.refused;
		f->sockets.overflows += one.overflows;
		f->sockets.user_stamps += one.user_stamps;
		f->sockets.left_stamps += one.left_stamps;
	}
}

static void client_commands(const struct server *s, char *stamp, char *flow, size_t size)
{
	char port[32] = "";

	if (s->o->port != strtoull(SERVER_PORT, NULL, 10))
		snprintf(port, sizeof port, " --port %" PRIu64, s->o->port);
	snprintf(stamp, size, "ktrxer stamp HOST%s%s", port, s->o->auth_key_file ? " --auth-key-file FILE" : "");
	snprintf(flow, size, "ktrxer flow down HOST%s --token-file FILE", port);
}

static void listening_json(struct server *s, const struct privilege_left *left, const char *stamp, const char *flow)
{
	struct json *json = out_event(s->cli, "listening");
	char text[KTRXER_ADDR_TEXT];

	if (!json)
		return;
	serve_listening_version(json, ktrxer_version());
	serve_listening_port(json, s->o->port);
	serve_listening_stamp_port_or_null(json, s->o->stamp_port, s->o->stamp_port);
	serve_listening_addresses_open(json);
	for (int i = 0; i < s->addr_count; i++)
		json_string(json, NULL, ktrxer_addr_format(&s->addrs[i], text));
	json_array_end(json);
	serve_listening_mode(json, s->o->auth_key_file ? "authenticated" : "open");
	serve_listening_stateful(json, !s->o->stateless);
	if (KTRXER_SERVER_EXTRAS)
		serve_listening_passed_sockets(json, (uint64_t)s->passed.count);
	if (KTRXER_SERVER_EXTRAS)
		services_listening(&s->services, json);
	serve_listening_uid(json, left->uid);
	serve_listening_system_call_filter(json, s->filtered);
	serve_listening_client(json, stamp);
	if (*s->token_path)
		serve_listening_token_file(json, s->token_path);
	if (s->o->max_clients)
		serve_listening_flow_client(json, flow);
	out_put(s->cli, json);
}

void server_say_listening(struct server *s, const struct privilege_left *left)
{
	char stamp[192], flow[192], address[KTRXER_ADDR_TEXT];
	const bool person = *s->token_path && isatty(STDOUT_FILENO);

	client_commands(s, stamp, flow, sizeof stamp);
	for (int i = 0; i < s->addr_count; i++)
		out_text(s->cli, "listening on %s, TCP and UDP port %" PRIu64,
			 ktrxer_addr_format(&s->addrs[i], address), s->o->port);
	if (s->o->stamp_port)
		out_text(s->cli, "STAMP also on UDP port %" PRIu64, s->o->stamp_port);
	if (KTRXER_SERVER_EXTRAS)
		services_say(&s->services, s->cli);
	out_text(s->cli, "STAMP in %s mode, %s; user id %u, %s", s->o->auth_key_file ? "authenticated" : "open",
		 s->o->stateless ? "stateless" : "stateful", (unsigned int)left->uid,
		 s->filtered ? "system calls filtered" : "no filter of system calls");
	if (KTRXER_SERVER_EXTRAS && s->passed.count)
		out_text(s->cli, "%d sockets passed by the service manager", s->passed.count);
	/*
	 * A terminal shows the token; whatever else reads the output (a journal, a log) may keep it, and gets the name
	 * of its file.
	 */
	if (*s->token_path)
		out_text(s->cli, "token of clients: in %s%s%.*s; copy it to the clients, mode 0600", s->token_path,
			 person ? ": " : "", person ? s->token_length : 0, (const char *)s->token);
	out_text(s->cli, "client: %s", stamp);
	if (s->o->max_clients)
		out_text(s->cli, "client: %s", flow);
	listening_json(s, left, stamp, flow);
}

int server_say_end(struct server *s)
{
	struct json *json = out_end(s->cli);
	struct serve_figures f;

	server_figures(s, &f);
	out_text(s->cli, "STAMP: %" PRIu64 " packets received, %" PRIu64 " answers sent", f.stamp.received,
		 f.sockets.sent);
	out_text(s->cli, "flows: %" PRIu64 " of %" PRIu64 " clients, %" PRIu64 " bytes in, %" PRIu64 " bytes out",
		 f.flows.flows, f.flows.sessions, f.flows.bytes[0], f.flows.bytes[1]);
	figures_json(json, &f);
	if (KTRXER_SERVER_EXTRAS) {
		services_end(&s->services, json);
		serve_end_log_lines_left_out(json, f.log_left_out);
	}
	return out_finish(s->cli, json);
}
