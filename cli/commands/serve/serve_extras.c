/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics, the services with ports of their own, a new token on SIGHUP, and the review of sessions. */
#include "base_limits.h"
#include "serve.h"

#include "fields_serve.h"
#include "error.h"
#include "reload.h"

#include <errno.h>

enum { REVIEW_MS = 250 }; /* all places of the reflector's table in 4 s */

static void sessions_review(struct loop_timer *timer, uint64_t now_ns)
{
	struct server *s = (struct server *)((char *)timer - offsetof(struct server, review_timer));

	reflector_review(s->reflector, false, now_ns);
	client_log_review(&s->log, false, now_ns);
	timer->at_ns = now_ns + REVIEW_MS * (uint64_t)KTRXER_NS_PER_MS;
}

static void metrics_fill(void *context, struct metrics_text *text)
{
	struct server *s = context;
	struct serve_figures figures;

	server_figures(s, &figures);
	metrics_write(text, &figures);
	services_metrics(&s->services, text);
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

/* Reads the token that new clients need; sessions continue. A file that cannot be read leaves the token as it was. */
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
		services_set_token(&s->services, token, (size_t)length);
		secret_forget(&key, sizeof key);
		out_text(s->cli, "token read again from %s", path);
	} else {
		cli_complain(s->cli, "the token stays as it was: %s", *path ? err.text : "it did not come from a file");
	}
	secret_forget(token, sizeof token);
	json = out_event(s->cli, "token_reloaded");
	if (!json)
		return;
	serve_token_done(json, length > 0);
	out_put(s->cli, json);
}

static int all_services_open(struct server *s, struct ktrxer_error *err)
{
	const struct serve_services_options o = {
		.loop = s->loop,
		.addrs = s->addrs,
		.addr_count = s->addr_count,
		.all_addresses = !s->o->bind.count,
		.ports = s->o->service_ports,
		.limits = { .token = s->token,
			    .token_length = (size_t)s->token_length,
			    .max_clients = (uint32_t)s->o->max_clients,
			    .max_ns = s->o->max_ns,
			    .max_bps = s->o->max_bps,
			    .answer_bps = s->o->answer_bps,
			    .dscp_granted = s->dscp_granted,
			    .dscp_open = s->o->dscp_allow ? s->dscp_granted : REFLECTOR_DSCP_DEFAULT },
	};

	return s->o->max_clients ? services_open(&s->services, &o, err) : 0;
}

int server_extras_open(struct server *s, struct ktrxer_error *err)
{
	int rc = metrics_open(s, err);

	if (rc == 0)
		rc = all_services_open(s, err);
	s->reload.ready = token_again;
	if (rc == 0 && s->o->max_clients && reload_open(s->loop, &s->reload) < 0)
		rc = ktrxer_fail(err, -ENOMEM, "the event loop does not take SIGHUP");
	s->review_timer = (struct loop_timer){ .at_ns = 0, .due = sessions_review };
	if (rc == 0)
		loop_timer_add(s->loop, &s->review_timer);
	return rc;
}
