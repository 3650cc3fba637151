/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer serve`: the far end of what has two ends. */
#include "serve.h"

#include "base_limits.h"
#include "clock_sync.h"
#include "flow_spec.h"
#include "out.h"
#include "reload.h"
#include "shared_options.h"
#include "syscall_filter.h"

#include <errno.h>
#include <string.h>

#define FIELD(name) offsetof(struct serve_options, name)
#define SERVICE_OPTION(id, about)                                                                            \
	{ .name = #id "-port",                                                                               \
	  .type = OPT_UINT,                                                                                  \
	  .offset = FIELD(service_ports) + SERVICE_##id * sizeof(uint64_t),                                  \
	  .argument = "N",                                                                                   \
	  .max = 65535,                                                                                      \
	  .help = about },

/* clang-format off */
static const struct opt serve_opts[] = {
	{ .name = "bind", .type = OPT_LIST, .offset = FIELD(bind), .argument = "ADDR", .heading = "Where",
	  .help = "Listen on this address alone; by default on all, IPv4 and IPv6" },
	OPTION_PORT(FIELD(port), .fallback = SERVER_PORT, .help = "Port, for TCP and UDP alike"),
	{ .name = "stamp-port", .type = OPT_UINT, .offset = FIELD(stamp_port), .argument = "N", .max = 65535,
	  .help = "A second UDP port for STAMP and TWAMP Light alone; other senders use 862" },
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)),
	OPTION_TOKEN_FILE(FIELD(token_file), .heading = "Access",
			  .help = "The token of clients that may request flows, in a file of mode 0600. Without it "
				"KTRXER_TOKEN of the environment counts; without both a token is made "
				  "and kept in ktrxer-PORT.token below "
					"RUNTIME_DIRECTORY, XDG_RUNTIME_DIR, /run (root) or HOME"),
	OPTION_AUTH_KEY_FILE(FIELD(auth_key_file), .help = "STAMP's authenticated mode with the key in this file: "
			"nothing else is answered"),
	OPTION_TLV_KEY_FILE(FIELD(tlv_key_file), "TLVs"),
	{ .name = "max-answer-rate", .type = OPT_UINT, .offset = FIELD(rate), .argument = "N", .fallback = "10000",
	  .max = 100000000,
	  .help = "Answers a second to each /24 of IPv4 and /56 of IPv6; an answer of more than 512 bytes counts as "
		  "several; 0: no limit" },
	{ .name = "burst", .type = OPT_UINT, .offset = FIELD(burst), .argument = "N", .fallback = "1000", .min = 1,
	  .max = 1000000,
	  .help = "Answers at once after a silence" },
	{ .name = "max-answer-bitrate", .type = OPT_BITRATE, .offset = FIELD(answer_bps), .argument = "BITRATE",
	  .fallback = "200M", .max = INT64_MAX,
	  .help = "Bit rate of all answers together; 0: no limit" },
	{ .name = "dscp-allow", .type = OPT_STRING, .offset = FIELD(dscp_allow), .argument = "LIST",
	  .help = "DSCPs of answers and flows beside best effort, by name or number, with commas. Without it: those "
		  "below CS6 for clients with the token or the key, none for others" },
	{ .name = "max-clients", .type = OPT_UINT, .offset = FIELD(max_clients), .argument = "N", .fallback = "8",
	  .max = 1000,
	  .heading = "Flows", .help = "Clients at once; 0: no client gets flows" },
	{ .name = "max-flows", .type = OPT_UINT, .offset = FIELD(max_flows), .argument = "N", .fallback = "2048",
	  .min = 1,
	  .max = KTRXER_FLOW_FLOWS_MAX, .help = "Flows of each client" },
	{ .name = "max-duration", .type = OPT_DURATION, .offset = FIELD(max_ns), .argument = "D", .fallback = "1h",
	  .min = 1000000000,
	  .max = 365ULL * 86400 * 1000000000, .help = "Longest duration of a client's request" },
	OPTION_MAX_BITRATE(FIELD(max_bps), .max = INT64_MAX,
	  .help = "Bit rate of one client's flows in one direction: TCP is paced to it, faster UDP refused; by default "
		  "there is no limit"),
	{ .name = "stateless", .type = OPT_FLAG, .offset = FIELD(stateless), .heading = "How",
	  .help = "Copy sequence numbers instead of counting: no loss by direction, no memory of senders" },
	OPTION_PTP(FIELD(ptp)),
#ifndef KTRXER_SMALL
	SERVICE_LIST(SERVICE_OPTION)
	{ .name = "metrics", .type = OPT_STRING, .offset = FIELD(metrics), .argument = "ADDR:PORT",
	  .help = "Counts in the format of OpenMetrics, for GET /metrics by HTTP at this address, without a login" },
#endif
	{ 0 },
};
/* clang-format on */

static void clock_look(struct loop_timer *timer, uint64_t now_ns)
{
	struct server *s = (struct server *)((char *)timer - offsetof(struct server, clock_timer));
	struct clock_sync sync;

	clock_sync_read(&sync);
	reflector_set_clock(s->reflector, sync.synchronised, sync.bound_ns);
	timer->at_ns = now_ns + 2 * (uint64_t)KTRXER_NS_PER_S;
}

static void server_close(struct server *s)
{
	for (int i = 0; i < s->socket_count; i++)
		serve_udp_close(s->sockets[i]);
	serve_control_free(s->control);
	if (KTRXER_SERVER_EXTRAS) {
		services_close(&s->services);
		serve_metrics_close(s->metrics);
		client_log_close(&s->log);
	}
	if (s->loop)
		reload_close(s->loop, &s->reload);
	loop_free(s->loop);
	reflector_free(s->reflector);
	secret_forget(s->token, sizeof s->token);
}

static int run_serve(struct cli *cli, const void *options)
{
	struct server s = { .cli = cli, .o = options, .clock_timer = { .due = clock_look }, .reload = { .fd = -1 } };
	struct privilege_left left;
	struct ktrxer_error err = { 0 };
	int rc = server_open(&s, &err), status;

	if (rc == 0 && KTRXER_SERVER_EXTRAS)
		rc = server_extras_open(&s, &err);
	if (rc == 0)
		rc = privilege_drop(&left, &err);
	if (rc < 0) {
		cli_complain(cli, "%s%s", err.text, err.code == -EADDRINUSE ? ", --port chooses another" : "");
		server_close(&s);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_NO_RESULT;
	}
	rc = cli_helpers_start(cli);
	if (rc < 0) {
		cli_complain(cli, "cannot begin: %s", strerror(-rc));
		server_close(&s);
		return EXIT_NO_RESULT;
	}
	s.filtered = syscall_filter_install() == 0; /* all threads run */
	clock_look(&s.clock_timer, ktrxer_now_ns());
	loop_timer_add(s.loop, &s.clock_timer);
	out_start(cli);
	server_say_listening(&s, &left);
	rc = loop_run(s.loop, cli->stop_fd);
	if (rc < 0)
		cli_complain(cli, "the event loop failed: %s", strerror(-rc));
	serve_control_end(s.control);
	if (KTRXER_SERVER_EXTRAS) {
		reflector_review(s.reflector, true, ktrxer_now_ns());
		client_log_review(&s.log, true, ktrxer_now_ns());
	}
	status = server_say_end(&s);
	server_close(&s);
	return rc < 0 ? EXIT_NO_RESULT : status;
}

const struct command cmd_serve = {
	.name = "serve",
	.summary = "The far end: answers STAMP and TWAMP Light, with the kernel's stamps",
	.description = OPT_PROSE("A reflector of test packets by STAMP (RFC 8762) with the extensions of RFC 8972: "
				 "the far end of `ktrxer stamp` and of other senders. The reflector counts the "
				 "packets of each sender, so that loss is known by direction, and reports on "
				 "request when the driver took each answer (follow-up telemetry).\n\n"
				 "An answer is never longer than its request; nothing goes to groups, to other "
				 "reflectors, or faster than --max-answer-rate to one "
				 "neighbourhood. Once its sockets are open the server gives up all privileges.\n\n"
				 "The first lines of output have the addresses and ports, a command line for a "
				 "client, and the file of the token if the server made one. After SIGTERM the server "
				 "prints its counts."),
	.examples =
		OPT_PROSE("ktrxer serve\tOn all addresses, port 8620.\n"
			  "ktrxer serve --stamp-port 862\tAlso for other STAMP senders.\n"
			  "ktrxer serve --bind 192.0.2.1 --auth-key-file key\tOnly for senders that have the key.\n"),
	.options = serve_opts,
	.options_size = sizeof(struct serve_options),
	.run = run_serve,
	.serves = true,
};
