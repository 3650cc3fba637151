/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of IP-layer capacity (UDPSTP, RFC 9946) as a part of `ktrxer serve`. Clients prove the token. */
#include "service.h"
#include "udpstp_server.h"

#include "fields_capacity.h"
#include "metric_table.h"

/* Clients with the token may be as many as those that get flows. */
static int service_open(void **server, struct loop *loop, const struct service_limits *limits, struct ktrxer_error *err)
{
	const struct udpstp_server_options o = { .secret = limits->token,
						 .secret_length = limits->token_length,
						 .max_clients = limits->max_clients,
						 .max_ns = limits->max_ns,
						 .max_bps = limits->max_bps,
						 .dscp_granted = limits->dscp_granted,
						 .random = limits->random };
	struct udpstp_server *made = NULL;
	int rc = udpstp_server_new(&made, loop, &o, err);

	*server = made;
	return rc;
}

static int service_listen(void *server, const struct ktrxer_addr *bind, uint16_t port, struct ktrxer_error *err)
{
	return udpstp_server_listen(server, bind, port, err);
}

static void service_set_token(void *server, const uint8_t *token, size_t length)
{
	udpstp_server_set_secret(server, token, length);
}

static struct udpstp_server_counts counts_of(const void *server)
{
	struct udpstp_server_counts counts = { 0 };

	if (server)
		udpstp_server_counts(server, &counts);
	return counts;
}

static void service_end(struct json *json, const void *server)
{
	const struct udpstp_server_counts c = counts_of(server);

	capacity_serve_end_capacity_open(json);
	capacity_served_requests(json, c.requests);
	capacity_served_tests(json, c.tests);
	capacity_served_refused(json, c.refused);
	capacity_served_bytes_in(json, c.bytes[0]);
	capacity_served_bytes_out(json, c.bytes[1]);
	capacity_served_lost_in_socket(json, c.socket_drops);
	json_object_end(json);
}

static void service_metrics(struct metrics_text *text, const void *server)
{
	const struct udpstp_server_counts c = counts_of(server);

	metric_capacity_tests(text, c.tests);
	metric_capacity_refusals(text, c.refused);
}

static void service_listening(struct json *json, uint16_t port)
{
	capacity_listening_udpstp_port(json, port);
}

static void service_close(void *server)
{
	udpstp_server_free(server);
}

const struct service service_udpstp = {
	.about = "tests of IP-layer capacity (UDPSTP) on UDP port",
	.open = service_open,
	.listen = service_listen,
	.set_token = service_set_token,
	.listening = service_listening,
	.end = service_end,
	.metrics = service_metrics,
	.close = service_close,
};
