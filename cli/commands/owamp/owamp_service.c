/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The server of OWAMP (RFC 4656) as a part of `ktrxer serve`. It needs no token. */
#include "owamp_server.h"
#include "service.h"

#include "fields_owamp.h"
#include "metric_table.h"

static int service_open(void **server, struct loop *loop, const struct service_limits *limits, struct ktrxer_error *err)
{
	const struct owamp_server_options o = { .max_clients = limits->max_clients,
						.max_ns = limits->max_ns,
						.max_bps = limits->max_bps,
						.max_all_bps = limits->answer_bps,
						.dscp_granted = limits->dscp_open,
						.random = limits->random };
	struct owamp_server *made = NULL;
	int rc = owamp_server_new(&made, loop, &o, err);

	*server = made;
	return rc;
}

static int service_listen(void *server, const struct ktrxer_addr *bind, uint16_t port, struct ktrxer_error *err)
{
	return owamp_server_listen(server, bind, port, err);
}

static struct owamp_server_counts counts_of(const void *server)
{
	struct owamp_server_counts counts = { 0 };

	if (server)
		owamp_server_counts(server, &counts);
	return counts;
}

static void service_end(struct json *json, const void *server)
{
	const struct owamp_server_counts c = counts_of(server);

	owamp_serve_end_owamp_open(json);
	owamp_served_connections(json, c.connections);
	owamp_served_sessions(json, c.sessions);
	owamp_served_refused(json, c.refused);
	owamp_served_protocol_errors(json, c.protocol_errors);
	owamp_served_packets_in(json, c.packets[0]);
	owamp_served_packets_out(json, c.packets[1]);
	owamp_served_lost_in_socket(json, c.socket_drops);
	json_object_end(json);
}

static void service_metrics(struct metrics_text *text, const void *server)
{
	const struct owamp_server_counts c = counts_of(server);

	metric_owamp_sessions(text, c.sessions);
	metric_owamp_refusals(text, c.refused);
}

static void service_listening(struct json *json, uint16_t port)
{
	owamp_listening_owamp_port(json, port);
}

static void service_close(void *server)
{
	owamp_server_free(server);
}

const struct service service_owamp = {
	.about = "OWAMP, unauthenticated, on TCP port",
	.open = service_open,
	.listen = service_listen,
	.listening = service_listening,
	.end = service_end,
	.metrics = service_metrics,
	.close = service_close,
};
