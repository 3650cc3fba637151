/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The preparation of the prober: path, engine, ports, receive rules, the request. */
#include "error.h"
#include "path_find.h"
#include "tcp_prober_state.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLOTS = 256 };

static int open_tx(struct tcp_prober *p, struct ktrxer_error *err)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	const struct tcp_prober_spec *s = &p->spec;
	int rc = path_find(&p->path, s->device, &s->from, &s->to, false, err);

	if (rc < 0)
		return rc;
	if (p->path.needs_stack)
		return ktrxer_fail(
			err, -EOPNOTSUPP,
			"the web server is on this host itself, whose kernel drops segments that this program "
			"builds: measure from another host");
	options.device = p->path.device.name;
	options.engine = p->spec.engine;
	options.wait = p->spec.precise ? KTX_WAIT_SPIN : KTX_WAIT_SLEEP;
	options.flags = p->spec.precise ? 0 : KTX_CALLER_PUMPS | KTX_NO_LOCK;
	options.slots = SLOTS;
	options.late_ns = p->spec.late_ns;
	if ((rc = ktx_open(&p->tx, &options, err)) < 0)
		return rc;
	ktx_info(p->tx, &p->info);
	if (!(p->info.features & KTX_CAN_WHOLE_FRAME))
		return 0;
	return path_find(&p->path, s->device, &s->from, &s->to, true, err);
}

static int reserve_port(struct tcp_prober *p, int i, struct ktrxer_error *err)
{
	struct sockaddr_storage own = { .ss_family = p->path.source.family };
	struct sockaddr_in *own4 = (struct sockaddr_in *)&own;
	struct sockaddr_in6 *own6 = (struct sockaddr_in6 *)&own;
	const bool six = own.ss_family == AF_INET6;
	socklen_t length = six ? sizeof *own6 : sizeof *own4;
	int rc;

	if (six) {
		memcpy(&own6->sin6_addr, p->path.source.bytes, 16);
		own6->sin6_scope_id = p->path.device.index;
	} else {
		memcpy(&own4->sin_addr, p->path.source.bytes, 4);
	}
	p->sockets[i] = socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->sockets[i] < 0 || bind(p->sockets[i], (struct sockaddr *)&own, length) < 0 ||
	    getsockname(p->sockets[i], (struct sockaddr *)&own, &length) < 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "no TCP port of this host could be reserved for the probes: %m");
	}
	p->ports[i] = ntohs(six ? own6->sin6_port : own4->sin_port);
	return 0;
}

static bool has_receiver(const char *const devices[], int count, const char *device)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(devices[i], device))
			return true;
	return false;
}

/*
 * The server's segments may arrive by another device than the one that the route names. Rules that drop sit on one
 * device, so each device with an address of this family has a receiver; ports of bridges and bonds have no address. A
 * device that allows none is left out: the run itself does not depend on it.
 */
static void open_others(struct tcp_prober *p, const struct krx_rule *rules)
{
	const char *devices[TCP_RECEIVERS] = { p->path.device.name };
	struct krx_options options = KRX_OPTIONS_INIT;
	struct ifaddrs *all = NULL;

	options.backend = "nftables"; /* a program of XDP restarts the links of some drivers */
	if (getifaddrs(&all) != 0)
		return;
	for (const struct ifaddrs *a = all; a && p->receiver_count < TCP_RECEIVERS; a = a->ifa_next) {
		struct ktrxer_error unused;

		if (!a->ifa_addr || a->ifa_addr->sa_family != p->spec.to.family || !(a->ifa_flags & IFF_UP) ||
		    a->ifa_flags & IFF_LOOPBACK || has_receiver(devices, p->receiver_count, a->ifa_name))
			continue;
		options.device = a->ifa_name;
		if (krx_open(&p->receivers[p->receiver_count].krx, &options, rules, TCP_PORTS, &unused) == 0)
			devices[p->receiver_count++] = a->ifa_name;
	}
	freeifaddrs(all);
}

static int open_rx(struct tcp_prober *p, struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	const uint8_t bits = p->spec.to.family == AF_INET6 ? 128 : 32;
	struct krx_rule rules[TCP_PORTS];
	struct krx_stats stats = { 0 };
	int rc;

	for (int i = 0; i < TCP_PORTS; i++) {
		if ((rc = reserve_port(p, i, err)) < 0)
			return rc;
		rules[i] = (struct krx_rule){ .op = KRX_CAPTURE_DROP,
					      .proto = KTRXER_TCP,
					      .from = p->spec.to,
					      .to = p->path.source,
					      .from_prefix = bits,
					      .to_prefix = bits,
					      .from_port = p->spec.port,
					      .to_port = p->ports[i] };
		rules[i].from.scope_id = rules[i].to.scope_id =
			0; /* a rule is about packets, which do not contain it */
	}
	options.device = p->path.device.name;
	if ((rc = krx_open(&p->receivers[0].krx, &options, rules, TCP_PORTS, err)) < 0)
		return rc;
	p->receiver_count = 1;
	open_others(p, rules);
	if (krx_stats(p->receivers[0].krx, &stats, NULL, 0) == 0)
		p->backend = stats.backend;
	return 0;
}

static int make_request(struct tcp_prober *p, struct ktrxer_error *err)
{
	struct ktrxer_addr typed;
	struct tcp_request_spec r = {
		.host = p->spec.host, .port = p->spec.port, .path = p->spec.path, .length = p->spec.payload
	};
	const uint32_t head = TCP_HEADER + (p->spec.to.family == AF_INET6 ? 40 : 20);
	int rc;

	r.is_ipv6 = ktrxer_addr_parse(&typed, p->spec.host) == 0 && typed.family == AF_INET6;
	rc = tcp_request_make(p->request, &r, err);
	if (rc < 0)
		return rc;
	p->request_length = (uint32_t)rc;
	if (p->request_length + head > p->path.mtu || p->spec.mss + head > p->path.mtu)
		return ktrxer_fail(err, -EMSGSIZE,
				   "requests of %u bytes and segments of %u do not fit into the MTU of %u on '%s'",
				   p->request_length, p->spec.mss, p->path.mtu, p->path.device.name);
	for (uint32_t i = 0; i < p->spec.connections; i++)
		p->places[i].connection = (struct tcp_connection){
			.spec = { (const uint8_t *)p->request, p->request_length, p->spec.mss, p->spec.timeout_ns },
			.calls = { tcp_prober_on_send, tcp_prober_on_done, p },
			.place = i,
		};
	return 0;
}

int tcp_prober_new(struct tcp_prober **out, const struct tcp_prober_spec *spec, struct ktrxer_error *err)
{
	struct tcp_prober *p = calloc(1, sizeof *p);
	int rc;

	*out = p;
	if (!p)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes");
	p->spec = *spec;
	for (int i = 0; i < TCP_PORTS; i++)
		p->sockets[i] = -1;
	p->result.rtt = ktrxer_hist_new();
	p->result.lateness = ktrxer_hist_new();
	if (!p->result.rtt || !p->result.lateness)
		return ktrxer_fail(err, -ENOMEM, "no memory for the results");
	rc = loop_new(&p->loop);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the event loop could not be opened: %m");
	if ((rc = open_tx(p, err)) < 0 || (rc = make_request(p, err)) < 0 || (rc = open_rx(p, err)) < 0)
		return rc;
	return privilege_drop(&p->privileges, err);
}

void tcp_prober_free(struct tcp_prober *p)
{
	if (!p)
		return;
	loop_free(p->loop);
	for (int r = 0; r < p->receiver_count; r++)
		krx_close(p->receivers[r].krx);
	ktx_close(p->tx);
	for (int i = 0; i < TCP_PORTS; i++)
		if (p->sockets[i] >= 0)
			close(p->sockets[i]);
	ktrxer_schedule_free(p->schedule);
	ktrxer_hist_free(p->result.rtt);
	ktrxer_hist_free(p->result.lateness);
	free(p);
}
