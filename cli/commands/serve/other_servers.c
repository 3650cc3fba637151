/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "other_servers.h"

#include "error.h"

#include <errno.h>
#include <sys/random.h>

/* Clients with the token may be as many as those that get flows. */
static int capacity_open(struct other_servers *s, const struct other_servers_options *o, uint64_t random,
			 struct ktrxer_error *err)
{
	const struct udpstp_server_options u = { .secret = o->token,
						 .secret_length = o->token_length,
						 .max_clients = o->max_clients,
						 .max_ns = o->max_ns,
						 .max_bps = o->max_bps,
						 .dscp_granted = o->dscp_granted,
						 .random = random };
	int rc = udpstp_server_new(&s->capacity, o->loop, &u, err);

	for (int i = 0; i < o->addr_count && rc == 0; i++) {
		rc = udpstp_server_listen(s->capacity, &o->addrs[i], o->udpstp_port, err);
		if (rc == -EAFNOSUPPORT && o->all_addresses)
			rc = 0;
	}
	return rc;
}

static int owamp_open(struct other_servers *s, const struct other_servers_options *o, uint64_t random,
		      struct ktrxer_error *err)
{
	const struct owamp_server_options w = { .max_clients = o->max_clients,
						.max_ns = o->max_ns,
						.max_bps = o->max_bps,
						.max_all_bps = o->answer_bps,
						.dscp_granted = o->dscp_open,
						.random = random };
	int rc = owamp_server_new(&s->owamp, o->loop, &w, err);

	for (int i = 0; i < o->addr_count && rc == 0; i++) {
		rc = owamp_server_listen(s->owamp, &o->addrs[i], o->owamp_port, err);
		if (rc == -EAFNOSUPPORT && o->all_addresses)
			rc = 0;
	}
	return rc;
}

int other_servers_open(struct other_servers *s, const struct other_servers_options *o, struct ktrxer_error *err)
{
	uint64_t random[2];
	int rc = 0;

	*s = (struct other_servers){ .udpstp_port = o->udpstp_port, .owamp_port = o->owamp_port };
	if (getrandom(random, sizeof random, 0) != sizeof random)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	if (o->udpstp_port)
		rc = capacity_open(s, o, random[0], err);
	if (rc == 0 && o->owamp_port)
		rc = owamp_open(s, o, random[1], err);
	return rc;
}

void other_servers_say(const struct other_servers *s, struct cli *cli)
{
	if (s->capacity)
		out_text(cli, "tests of IP-layer capacity (UDPSTP) on UDP port %u", s->udpstp_port);
	if (s->owamp)
		out_text(cli, "OWAMP, unauthenticated, on TCP port %u", s->owamp_port);
}

void other_servers_close(struct other_servers *s)
{
	udpstp_server_free(s->capacity);
	owamp_server_free(s->owamp);
}
