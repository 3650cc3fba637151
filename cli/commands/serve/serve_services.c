/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve_services.h"

#include "error.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

static int service_open(void **server, const struct service *service, uint16_t port,
			const struct serve_services_options *o, struct ktrxer_error *err)
{
	struct service_limits limits = o->limits;
	int rc;

	if (getrandom(&limits.random, sizeof limits.random, 0) != sizeof limits.random)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	rc = service->open(server, o->loop, &limits, err);
	for (int i = 0; i < o->addr_count && rc == 0; i++) {
		rc = service->listen(*server, &o->addrs[i], port, err);
		if (rc == -EAFNOSUPPORT && o->all_addresses)
			rc = 0;
	}
	return rc;
}

int services_open(struct serve_services *s, const struct serve_services_options *o, struct ktrxer_error *err)
{
	int rc = 0;

	*s = (struct serve_services){ .ports = o->ports };
	for (int i = 0; i < SERVICES && rc == 0; i++)
		if (o->ports[i])
			rc = service_open(&s->servers[i], service_table[i], (uint16_t)o->ports[i], o, err);
	return rc;
}

void services_set_token(struct serve_services *s, const uint8_t *token, size_t length)
{
	for (int i = 0; i < SERVICES; i++)
		if (s->servers[i] && service_table[i]->set_token)
			service_table[i]->set_token(s->servers[i], token, length);
}

void services_say(const struct serve_services *s, struct cli *cli)
{
	for (int i = 0; i < SERVICES; i++)
		if (s->servers[i])
			out_text(cli, "%s %" PRIu64, service_table[i]->about, s->ports[i]);
}

void services_listening(const struct serve_services *s, struct json *json)
{
	for (int i = 0; i < SERVICES; i++)
		if (s->servers[i])
			service_table[i]->listening(json, (uint16_t)s->ports[i]);
}

void services_end(const struct serve_services *s, struct json *json)
{
	for (int i = 0; i < SERVICES; i++)
		service_table[i]->end(json, s->servers[i]);
}

void services_metrics(const struct serve_services *s, struct metrics_text *text)
{
	for (int i = 0; i < SERVICES; i++)
		service_table[i]->metrics(text, s->servers[i]);
}

void services_close(struct serve_services *s)
{
	for (int i = 0; i < SERVICES; i++)
		if (s->servers[i])
			service_table[i]->close(s->servers[i]);
}
