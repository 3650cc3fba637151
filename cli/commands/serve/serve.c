/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer serve`: the far end of what has two ends. */
#include "cli.h"
#include "client_log.h"
#include "clock_sync.h"
#include "dscp.h"
#include "error.h"
#include "figures.h"
#include "limiter.h"
#include "limits.h"
#include "metrics.h"
#include "other_servers.h"
#include "passed_sockets.h"
#include "privilege.h"
#include "reload.h"
#include "secret.h"
#include "serve_control.h"
#include "shared_options.h"
#include "syscall_filter.h"
#include "token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct serve_options {
	struct opt_list bind;
	uint64_t port, stamp_port, udpstp_port, owamp_port, rate, burst, answer_bps, max_clients, max_flows, max_ns,
		max_bps;
	const char *token_file, *auth_key_file, *tlv_key_file, *dscp_allow, *metrics;
	bool stateless, ptp, v4, v6;
};

#define FIELD(name) offsetof(struct serve_options, name)

/* clang-format off */
static const struct opt serve_opts[] = {
	{ .name = "bind", .type = OPT_LIST, .offset = FIELD(bind), .argument = "ADDR", .heading = "Where",
	  .help = "Listen on this address alone; by default on all, IPv4 and IPv6" },
	OPTION_PORT(FIELD(port), .fallback = "8620", .help = "Port, for TCP and UDP alike"),
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
	  .max = KTRXER_FLOW_FLOWS_MOST, .help = "Flows of each client" },
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
	{ .name = "udpstp-port", .type = OPT_UINT, .offset = FIELD(udpstp_port), .argument = "N", .max = 65535,
	  .help = "A UDP port for tests of IP-layer capacity by UDPSTP (`ktrxer capacity`, obudpst): 24601" },
	{ .name = "owamp-port", .type = OPT_UINT, .offset = FIELD(owamp_port), .argument = "N", .max = 65535,
	  .help = "A TCP port for OWAMP-Control (`ktrxer owamp`, owping), unauthenticated: 861" },
	{ .name = "metrics", .type = OPT_STRING, .offset = FIELD(metrics), .argument = "ADDR:PORT",
	  .help = "Counts in the format of OpenMetrics, for GET /metrics by HTTP at this address, without a login" },
#endif
	{ 0 },
};
/* clang-format on */

enum { REVIEW_MS = 250 }; /* all places of the reflector's table in 4 s */
enum { SOCKETS = 2 * KTRXER_SERVE_ADDRESSES + 2 };

struct server {
	struct cli *cli;
	const struct serve_options *o;
	struct loop *loop;
	struct reflector *reflector;
	struct serve_control *control;
	struct serve_udp *sockets[SOCKETS];
	struct ktrxer_addr addrs[KTRXER_SERVE_ADDRESSES];
	int addr_count, socket_count;
	struct passed_sockets passed; /* instead of sockets that the server opens */
	struct loop_timer clock_timer;
	uint8_t token[SECRET_MAX];
	int token_length;
	char token_path[256]; /* of a token that was made; "" */
	uint64_t dscp_granted;
	bool filtered; /* system calls */
	struct loop_source reload;
	struct client_log log;
	struct loop_timer review_timer;
	struct serve_metrics *metrics;
	struct other_servers others;
};

/* -------------------------------------------------------------------------------------------------------- the clock */

static void clock_look(struct loop_timer *timer, uint64_t now_ns)
{
	struct server *s = (struct server *)((char *)timer - offsetof(struct server, clock_timer));
	struct clock_sync sync;

	clock_sync_read(&sync);
	reflector_set_clock(s->reflector, sync.synchronised, sync.bound_ns);
	timer->at_ns = now_ns + 2 * (uint64_t)KTRXER_NS_PER_S;
}

/* ---------------------------------------------------------------------------------------------------------- figures */

static void figures_read(struct server *s, struct serve_figures *f)
{
	*f = (struct serve_figures){ 0 };
	if (KTRXER_SERVER_EXTRAS) {
		f->clients = registry_clients(serve_control_registry(s->control));
		f->pending = serve_control_pending(s->control);
		f->log_left_out = s->log.left_out;
		loop_figures(s->loop, &f->loop);
		if (s->others.capacity)
			udpstp_server_counts(s->others.capacity, &f->capacity);
		if (s->others.owamp)
			owamp_server_counts(s->others.owamp, &f->owamp);
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

/* -------------------------------------------------------------------------------------------------------- beginning */

static int passed_plan(struct server *s, struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;

	if (o->bind.count || o->v4 || o->v6)
		return ktrxer_fail(err, -EINVAL,
				   "--bind, -4 and -6 choose addresses, but the service manager has passed sockets "
				   "(LISTEN_FDS=%d); choose the addresses in the .socket unit",
				   s->passed.count);
	for (int i = 0; i < s->passed.count; i++) {
		const struct passed_socket *p = &s->passed.sockets[i];

		if (!p->udp || p->port != o->port)
			continue;
		if (s->addr_count == KTRXER_SERVE_ADDRESSES)
			return ktrxer_fail(err, -EINVAL, "sockets of more than %d addresses were passed",
					   KTRXER_SERVE_ADDRESSES);
		s->addrs[s->addr_count++] = p->addr;
	}
	return passed_sockets_check(&s->passed, (uint16_t)o->port, (uint16_t)o->stamp_port, o->max_clients, err);
}

/* 0: the server opens its sockets. */
static int passed_fd(const struct server *s, const struct ktrxer_addr *addr, uint16_t port, bool udp)
{
	const struct passed_socket *p = KTRXER_SERVER_EXTRAS ? passed_sockets_find(&s->passed, addr, port, udp) : NULL;

	return p ? p->fd : 0;
}

static int addresses_plan(struct server *s, struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;
	int rc = cli_family(o->v4, o->v6, err);

	if (rc == 0 && KTRXER_SERVER_EXTRAS)
		rc = passed_sockets_take(&s->passed, err);
	if (rc < 0)
		return rc;
	if (KTRXER_SERVER_EXTRAS && s->passed.count)
		return passed_plan(s, err);
	if (o->bind.count > KTRXER_SERVE_ADDRESSES)
		return ktrxer_fail(err, -EINVAL, "at most %d times --bind", KTRXER_SERVE_ADDRESSES);
	for (int i = 0; i < o->bind.count; i++) {
		struct ktrxer_addr *addr = &s->addrs[s->addr_count++];

		if (ktrxer_addr_parse(addr, o->bind.items[i]) < 0)
			return ktrxer_fail(err, -EINVAL,
					   "--bind %s: not an address of IPv4 or IPv6 (names are not looked up)",
					   o->bind.items[i]);
	}
	if (!o->bind.count) {
		if (!o->v6)
			s->addrs[s->addr_count++].family = AF_INET;
		if (!o->v4)
			s->addrs[s->addr_count++].family = AF_INET6;
	}
	return 0;
}

static int secrets_plan(struct server *s, struct reflector_options *r, struct stamp_keys *keys,
			struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;
	int rc;

	if ((rc = secret_stamp_keys_read(keys, o->auth_key_file, o->tlv_key_file, err)) < 0)
		return rc;
	r->auth_key = o->auth_key_file ? &keys->auth : NULL;
	r->tlv_key = o->tlv_key_file ? &keys->tlv : NULL;
	s->token_length = secret_token_read(o->token_file, s->token, err);
	if (s->token_length == -ENOENT)
		return ktrxer_fail(
			err, -ENOENT,
			"--token-file %s: no such file; make it: `(umask 077; head -c 16 /dev/urandom | base64 >%s)`",
			o->token_file, o->token_file);
	if (s->token_length != 0 || !o->max_clients)
		return s->token_length < 0 ? s->token_length : 0;
	s->token_length = token_keep(s->token_path, sizeof s->token_path, o->port, s->token, err);
	return s->token_length < 0 ? s->token_length : 0;
}

static int dscp_plan(struct server *s, struct ktrxer_error *err)
{
	const char *at = s->o->dscp_allow;

	s->dscp_granted = at ? REFLECTOR_DSCP_DEFAULT : REFLECTOR_DSCP_TRUSTED;
	while (at) {
		uint8_t dscp;
		int rc = dscp_next(&dscp, &at, err);

		if (rc < 0)
			return rc;
		s->dscp_granted |= 1ULL << dscp;
	}
	return 0;
}

static int sockets_open(struct server *s, struct ktrxer_error *err)
{
	for (int i = 0; i < s->addr_count; i++)
		for (int second = 0; second <= (s->o->stamp_port && s->o->stamp_port != s->o->port); second++) {
			struct serve_udp_options u = { .bind = s->addrs[i],
						       .reflector = s->reflector,
						       .port = (uint16_t)(second ? s->o->stamp_port : s->o->port) };
			int rc;

			u.claim = second || !s->o->max_clients ? NULL : serve_control_claim;
			u.trusted = s->o->max_clients ? serve_control_trusted : NULL;
			u.context = s->control;
			u.passed_fd = passed_fd(s, &u.bind, u.port, true);
			if (KTRXER_SERVER_EXTRAS && s->passed.count && !u.passed_fd)
				continue; /* not each address has the second port */
			rc = serve_udp_open(&s->sockets[s->socket_count], s->loop, &u, err);

			/* A kernel without IPv6 is no fault when no option requires IPv6. */
			if (rc == -EAFNOSUPPORT && !s->o->bind.count && s->addr_count > 1)
				continue;
			if (rc < 0)
				return rc;
			s->socket_count++;
			if (!second && s->o->max_clients &&
			    (rc = serve_control_listen(s->control, &s->addrs[i], u.port,
						       passed_fd(s, &u.bind, u.port, false), err)) < 0)
				return rc;
		}
	return s->socket_count ? 0 : ktrxer_fail(err, -EAFNOSUPPORT, "this kernel has neither IPv4 nor IPv6");
}

/* As many descriptors as flows may need, if this process may have them. */
static void descriptors_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

static int control_open_all(struct server *s, uint64_t secret, struct ktrxer_error *err)
{
	struct hmac_key token;
	struct serve_control_options c = { .token = &token,
					   .max_clients = (uint32_t)s->o->max_clients,
					   .max_flows = (uint32_t)s->o->max_flows,
					   .max_ns = s->o->max_ns,
					   .max_bps = s->o->max_bps,
					   .dscp_granted = s->dscp_granted,
					   .secret = limiter_mix(secret),
					   .ended = KTRXER_SERVER_EXTRAS ? client_log_flows : NULL,
					   .context = &s->log };
	int rc;

	descriptors_allow();
	hmac_key_set(&token, s->token, (size_t)s->token_length);
	rc = serve_control_new(&s->control, s->loop, &c, err);
	secret_forget(&token, sizeof token);
	return rc;
}

static int server_open(struct server *s, struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;
	struct reflector_options r = { .stateless = o->stateless,
				       .ptp = o->ptp,
				       .rate = (uint32_t)o->rate,
				       .burst = (uint32_t)o->burst,
				       .max_bps = o->answer_bps,
				       .own_ports = { (uint16_t)o->port, (uint16_t)o->stamp_port },
				       .ended = KTRXER_SERVER_EXTRAS ? client_log_stamp : NULL,
				       .context = &s->log };
	struct stamp_keys keys;
	int rc = addresses_plan(s, err);

	if (rc == 0)
		rc = dscp_plan(s, err);
	r.dscp_trusted = s->dscp_granted;
	r.dscp_granted = o->dscp_allow ? s->dscp_granted : REFLECTOR_DSCP_DEFAULT;
	if (rc == 0)
		rc = secrets_plan(s, &r, &keys, err);
	if (rc == 0 && getrandom(&r.secret, sizeof r.secret, 0) != sizeof r.secret)
		rc = ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	if (rc == 0 && ((KTRXER_SERVER_EXTRAS && client_log_open(&s->log, s->cli, limiter_mix(r.secret ^ 1)) < 0) ||
			reflector_new(&s->reflector, &r) < 0 || loop_new(&s->loop) < 0))
		rc = ktrxer_fail(err, -ENOMEM, "no memory for the server");
	secret_forget(&keys, sizeof keys);
	if (rc == 0)
		rc = control_open_all(s, r.secret, err);
	return rc < 0 ? rc : sockets_open(s, err);
}

static void sessions_review(struct loop_timer *timer, uint64_t now_ns)
{
	struct server *s = (struct server *)((char *)timer - offsetof(struct server, review_timer));

	reflector_review(s->reflector, false, now_ns);
	timer->at_ns = now_ns + REVIEW_MS * (uint64_t)KTRXER_NS_PER_MS;
}

static void metrics_fill(void *context, struct metrics_text *text)
{
	struct serve_figures figures;

	figures_read(context, &figures);
	metrics_write(text, &figures);
}

static int metrics_open(struct server *s, struct ktrxer_error *err)
{
	struct serve_metrics_options o = { .fill = metrics_fill, .context = s };
	int rc;

	if (!s->o->metrics)
		return 0;
	rc = metrics_address(&o.bind, &o.port, s->o->metrics, err);
	return rc < 0 ? rc : serve_metrics_open(&s->metrics, s->loop, &o, err);
}

/*
 * The token that new clients need; those that are served stay. A file that cannot be read leaves the token as it was.
 */
static void token_again(struct loop_source *source, uint32_t events)
{
	struct server *s = (struct server *)((char *)source - offsetof(struct server, reload));
	const char *path = s->o->token_file ? s->o->token_file : s->token_path;
	struct ktrxer_error err = { 0 };
	uint8_t token[SECRET_MAX];
	struct hmac_key key;
	struct json *json;
	int length = -ENOENT;

	(void)events;
	reload_taken(source);
	if (*path)
		length = secret_token_read(path, token, &err);
	if (length > 0) {
		hmac_key_set(&key, token, (size_t)length);
		serve_control_set_token(s->control, &key);
		if (KTRXER_SERVER_EXTRAS && s->others.capacity)
			udpstp_server_set_secret(s->others.capacity, token, (size_t)length);
		secret_forget(&key, sizeof key);
		out_text(s->cli, "token read again from %s", path);
	} else {
		cli_complain(s->cli, "the token stays as it was: %s", *path ? err.text : "it did not come from a file");
	}
	secret_forget(token, sizeof token);
	json = out_event(s->cli, "token_reloaded");
	if (!json)
		return;
	json_bool(json, "done", length > 0);
	out_put(s->cli, json);
}

static int others_open(struct server *s, struct ktrxer_error *err)
{
	const struct other_servers_options o = {
		.loop = s->loop,
		.addrs = s->addrs,
		.addr_count = s->addr_count,
		.all_addresses = !s->o->bind.count,
		.udpstp_port = (uint16_t)s->o->udpstp_port,
		.owamp_port = (uint16_t)s->o->owamp_port,
		.token = s->token,
		.token_length = (size_t)s->token_length,
		.max_clients = (uint32_t)s->o->max_clients,
		.max_ns = s->o->max_ns,
		.max_bps = s->o->max_bps,
		.answer_bps = s->o->answer_bps,
		.dscp_granted = s->dscp_granted,
		.dscp_open = s->o->dscp_allow ? s->dscp_granted : REFLECTOR_DSCP_DEFAULT,
	};

	return s->o->max_clients ? other_servers_open(&s->others, &o, err) : 0;
}

/* The small static program leaves these functions out (KTRXER_SERVER_EXTRAS). */
static int extras_open(struct server *s, struct ktrxer_error *err)
{
	int rc = metrics_open(s, err);

	if (rc == 0)
		rc = others_open(s, err);
	s->reload.ready = token_again;
	if (rc == 0 && s->o->max_clients && reload_open(s->loop, &s->reload) < 0)
		rc = ktrxer_fail(err, -ENOMEM, "the event loop does not take SIGHUP");
	s->review_timer = (struct loop_timer){ .at_ns = 0, .due = sessions_review };
	if (rc == 0)
		loop_timer_add(s->loop, &s->review_timer);
	return rc;
}

/* -------------------------------------------------------------------------------------------------------- reporting */

/* The commands that a client types, with this server's port. */
static void client_commands(const struct server *s, char *stamp, char *flow, size_t size)
{
	char port[32] = "";

	if (s->o->port != KTRXER_PORT)
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
	json_string(json, "version", ktrxer_version());
	json_u64(json, "port", s->o->port);
	json_u64_or_null(json, "stamp_port", s->o->stamp_port, s->o->stamp_port);
	json_array(json, "addresses");
	for (int i = 0; i < s->addr_count; i++)
		json_string(json, NULL, ktrxer_addr_format(&s->addrs[i], text));
	json_array_end(json);
	json_string(json, "mode", s->o->auth_key_file ? "authenticated" : "open");
	json_bool(json, "stateful", !s->o->stateless);
	if (KTRXER_SERVER_EXTRAS)
		json_u64(json, "passed_sockets", (uint64_t)s->passed.count);
	if (KTRXER_SERVER_EXTRAS && s->others.capacity)
		json_u64(json, "udpstp_port", s->o->udpstp_port);
	if (KTRXER_SERVER_EXTRAS && s->others.owamp)
		json_u64(json, "owamp_port", s->o->owamp_port);
	json_u64(json, "uid", left->uid);
	json_bool(json, "system_call_filter", s->filtered);
	json_string(json, "client", stamp);
	if (*s->token_path)
		json_string(json, "token_file", s->token_path);
	if (s->o->max_clients)
		json_string(json, "flow_client", flow);
	out_put(s->cli, json);
}

static void say_listening(struct server *s, const struct privilege_left *left)
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
		other_servers_say(&s->others, s->cli);
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

static int say_end(struct server *s)
{
	struct json *json = out_end(s->cli);
	struct serve_figures f;

	figures_read(s, &f);
	out_text(s->cli, "STAMP: %" PRIu64 " packets received, %" PRIu64 " answers sent", f.stamp.received,
		 f.sockets.sent);
	out_text(s->cli, "flows: %" PRIu64 " of %" PRIu64 " clients, %" PRIu64 " bytes in, %" PRIu64 " bytes out",
		 f.flows.flows, f.flows.sessions, f.flows.bytes[0], f.flows.bytes[1]);
	figures_json(json, &f);
	return out_finish(s->cli, json);
}

static void server_close(struct server *s)
{
	for (int i = 0; i < s->socket_count; i++)
		serve_udp_close(s->sockets[i]);
	serve_control_free(s->control);
	if (KTRXER_SERVER_EXTRAS) {
		other_servers_close(&s->others);
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
		rc = extras_open(&s, &err);
	if (rc == 0)
		rc = privilege_drop(&left, &err);
	if (rc < 0) {
		cli_complain(cli, "%s%s", err.text, err.code == -EADDRINUSE ? ", --port chooses another" : "");
		server_close(&s);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_BAD;
	}
	rc = cli_helpers_start(cli);
	if (rc < 0) {
		cli_complain(cli, "cannot begin: %s", strerror(-rc));
		server_close(&s);
		return EXIT_BAD;
	}
	s.filtered = syscall_filter_install() == 0; /* all threads run */
	clock_look(&s.clock_timer, ktrxer_now_ns());
	loop_timer_add(s.loop, &s.clock_timer);
	say_listening(&s, &left);
	rc = loop_run(s.loop, cli->stop_fd);
	if (rc < 0)
		cli_complain(cli, "the event loop failed: %s", strerror(-rc));
	serve_control_end(s.control);
	if (KTRXER_SERVER_EXTRAS)
		reflector_review(s.reflector, true, ktrxer_now_ns());
	status = say_end(&s);
	server_close(&s);
	return rc < 0 ? EXIT_BAD : status;
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
