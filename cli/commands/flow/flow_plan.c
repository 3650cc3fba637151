/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The plan of `flow`, checked before anything is sent. */
#include "dscp.h"
#include "error.h"
#include "flow.h"
#include "flow_spec.h"
#include "flow_tcp.h"
#include "path_find.h"
#include "path_report.h"
#include "secret.h"
#include "server_address.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { SPARE_DESCRIPTORS = 32, NAMES_MOST = 64 };

/* The items of "A,B,C"; flow i takes item i modulo their count, as Flent hands out markings. */
struct words {
	const char *at[NAMES_MOST];
	size_t length[NAMES_MOST];
	int count;
};

static int words_split(struct words *w, const char *option, const char *text, struct ktrxer_error *err)
{
	w->count = 0;
	for (const char *at = text; at;) {
		const char *comma = strchr(at, ',');
		const size_t length = comma ? (size_t)(comma - at) : strlen(at);

		if (!length || w->count == NAMES_MOST)
			return ktrxer_fail(err, -EINVAL, "--%s %.64s: 1 to %d words with a comma between", option, text,
					   NAMES_MOST);
		w->at[w->count] = at;
		w->length[w->count++] = length;
		at = comma ? comma + 1 : NULL;
	}
	return 0;
}

static bool word_is(const struct words *w, int i, const char *name)
{
	return w->length[i] == strlen(name) && strncmp(w->at[i], name, w->length[i]) == 0;
}

static int cc_check(const char *name, struct ktrxer_error *err)
{
	const int rc = flow_tcp_cc(name);
	if (rc == -ENOENT || rc == -EPERM)
		return flow_cc_refused(err, rc, name, false);
	return rc < 0 ? ktrxer_fail(err, rc, "congestion control '%s': %m", name) : 0;
}

static int plan_cc(struct flow_run *run, struct ktrxer_error *err)
{
	struct control_request *r = &run->plan.request;
	struct words w;
	int rc;

	if (!run->o->cc)
		return 0;
	if ((rc = words_split(&w, "cc", run->o->cc, err)) < 0)
		return rc;
	if (w.count > CONTROL_CCS)
		return ktrxer_fail(err, -EINVAL, "--cc: at most %d names", CONTROL_CCS);
	for (int i = 0; i < w.count; i++) {
		if (w.length[i] >= FLOW_CC_MAX)
			return ktrxer_fail(err, -EINVAL, "--cc %.*s: no congestion control has so long a name", 64,
					   w.at[i]);
		memcpy(r->ccs[i], w.at[i], w.length[i]);
		if (run->up && (rc = cc_check(r->ccs[i], err)) < 0)
			return rc;
	}
	/* The server is asked only for those that it is to use. */
	r->cc_count = run->down ? (uint8_t)w.count : 0;
	for (uint32_t i = 0; i < r->flows; i++) {
		const int which = (int)(i % (uint32_t)w.count);

		memcpy(run->specs[i].cc, r->ccs[which], FLOW_CC_MAX);
		run->specs[i].cc_index = run->specs[i].down ? (uint8_t)(which + 1) : 0;
	}
	return 0;
}

static int plan_dscp(struct flow_run *run, struct ktrxer_error *err)
{
	struct ktrxer_error word;
	struct words w;
	uint8_t dscp;
	int rc;

	if (!run->o->dscp)
		return 0;
	if ((rc = words_split(&w, "dscp", run->o->dscp, err)) < 0)
		return rc;
	for (int i = 0; i < w.count; i++) {
		if ((rc = dscp_parse(&dscp, w.at[i], w.length[i], &word)) < 0)
			return ktrxer_fail(err, rc, "--dscp: %s", word.text);
		for (uint32_t f = (uint32_t)i; f < run->o->flows; f += (uint32_t)w.count)
			for (uint32_t side = 0; side < run->plan.request.flows; side += (uint32_t)run->o->flows)
				run->specs[side + f].tos = (uint8_t)(dscp << 2);
	}
	return 0;
}

static int plan_ecn(struct flow_run *run, struct ktrxer_error *err)
{
	struct ktrxer_error word;
	static const char *const tcp_words[] = { [FLOW_ECN_ANY] = "any", [FLOW_ECN_ON] = "on", [FLOW_ECN_OFF] = "off" };
	struct words w;
	int rc;

	if (!run->o->ecn)
		return 0;
	if ((rc = words_split(&w, "ecn", run->o->ecn, err)) < 0)
		return rc;
	for (int i = 0; i < w.count; i++) {
		uint8_t which = 0;

		while (!run->o->udp && which < 3 && !word_is(&w, i, tcp_words[which]))
			which++;
		if (which == 3)
			return ktrxer_fail(err, -EINVAL,
					   "--ecn %.*s: not one of any, on, off (off, ect1 and ect0 are for --udp)",
					   (int)(w.length[i] < 32 ? w.length[i] : 32), w.at[i]);
		if (run->o->udp && (rc = ecn_parse(&which, w.at[i], w.length[i], &word)) < 0)
			return ktrxer_fail(err, rc, "--ecn: %s", word.text);
		for (uint32_t f = (uint32_t)i; f < run->o->flows; f += (uint32_t)w.count)
			for (uint32_t side = 0; side < run->plan.request.flows; side += (uint32_t)run->o->flows) {
				run->shown[side + f].ecn_wanted = run->o->udp ? FLOW_ECN_ANY : which;
				run->specs[side + f].tos |= run->o->udp ? which : 0;
			}
	}
	return 0;
}

static int plan_times(struct flow_run *run, struct ktrxer_error *err)
{
	const struct flow_options *o = run->o;
	struct control_request *r = &run->plan.request;

	r->for_ns = o->for_ns || o->bytes ? o->for_ns : 10 * (uint64_t)KTRXER_NS_PER_S;
	r->bytes = o->bytes;
	r->sample_ns = o->sample_ns;
	if (o->stagger_ns && o->flows - 1 > 86400ull * KTRXER_NS_PER_S / o->stagger_ns)
		return ktrxer_fail(err, -EINVAL, "--stagger: the last of %llu flows would begin after more than a day",
				   (unsigned long long)o->flows);
	r->whole_ns = r->for_ns ? r->for_ns + (o->flows - 1) * o->stagger_ns : 0;
	if (r->for_ns && r->sample_ns > r->for_ns)
		r->sample_ns = r->for_ns;
	for (uint32_t i = 0; i < r->flows; i++)
		run->specs[i].start_ns = i % o->flows * o->stagger_ns;
	return 0;
}

/* A frame of G.711 each 20 ms, with the head of RTP. */
enum { VOIP_PAYLOAD = 172, VOIP_BPS = VOIP_PAYLOAD * 8 * 50, PAYLOAD = 1200 };

static int plan_udp(struct flow_run *run, uint64_t rate_bps, struct ktrxer_error *err)
{
	const struct flow_options *o = run->o;
	const uint64_t payload = o->model == FLOW_VOIP ? VOIP_PAYLOAD : PAYLOAD;
	const uint64_t least = o->payload.given ? o->payload.from : payload,
		       most = o->payload.given ? o->payload.to : payload;
	/* Packets a second of all flows up: rate / (8 * (least + most) / 2) */
	const struct opt_rate pps = { .num = rate_bps * o->flows, .den = 4 * (least + most), .given = true };

	if (!rate_bps)
		return ktrxer_fail(err, -EINVAL, "--udp needs --bitrate: UDP flows have no other limit");
	if (run->plan.request.flows > KTRXER_FLOW_UDP_MAX)
		return ktrxer_fail(err, -EINVAL, "at most %d UDP flows, both directions together", KTRXER_FLOW_UDP_MAX);
	if (o->model == FLOW_VOIP && rate_bps < 8 * most)
		return ktrxer_fail(err, -EINVAL,
				   "--model voip: at this --bitrate a packet of %llu bytes takes longer than a second; "
				   "give a higher "
				   "--bitrate or a smaller --payload",
				   (unsigned long long)most);
	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		struct flow_spec *s = &run->specs[i];

		s->udp = true;
		s->model = (uint8_t)o->model;
		s->payload_min = (uint16_t)least;
		s->payload_max = (uint16_t)most;
	}
	run->plan.engine = o->engine;
	run->plan.device = o->device;
	run->plan.precise = o->precise;
	return run->up ? cli_guard_rate(&run->plan.to, &pps, o->flood, err) : 0;
}

static int plan_rate(struct flow_run *run, struct ktrxer_error *err)
{
	const struct flow_options *o = run->o;
	const uint64_t rate_bps = o->rate_bps || !o->udp || o->model != FLOW_VOIP ? o->rate_bps : VOIP_BPS;

	run->plan.cpu = (int)o->cpu;
	if (rate_bps && rate_bps > INT64_MAX / o->flows)
		return ktrxer_fail(err, -EINVAL, "--bitrate: %llu flows of it are more than anything can carry",
				   (unsigned long long)o->flows);
	if (!o->udp && (o->payload.given || o->model != FLOW_CONSTANT || o->precise))
		return ktrxer_fail(err, -EINVAL,
				   "--payload, --model and --precise are for UDP flows: give --udp as well");
	if (o->udp && o->cc)
		return ktrxer_fail(err, -EINVAL, "--cc is for TCP flows");
	run->plan.request.rate_bps = rate_bps * o->flows;
	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		run->specs[i].rate_bps = rate_bps;
	return o->udp ? plan_udp(run, rate_bps, err) : 0;
}

static int plan_descriptors(uint32_t flows, struct ktrxer_error *err)
{
	const rlim_t wanted = flows + SPARE_DESCRIPTORS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < wanted)
		return ktrxer_fail(err, -EMFILE,
				   "%u flows need %llu descriptors, and this process may have %llu: `ulimit -Hn` as "
				   "root allows more",
				   flows, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
	return 0;
}

int flow_token_read(struct hmac_key *key, const char *token_file, struct ktrxer_error *err)
{
	uint8_t token[SECRET_MAX];
	int length = secret_token_read(token_file, token, err);

	if (length == 0)
		return ktrxer_fail(
			err, -ENOKEY,
			"--token-file is missing: the measurement needs the token of `ktrxer serve`, which "
			"names its file at its start. Put the token into a file of mode 0600, or into $KTRXER_TOKEN");
	if (length > 0)
		hmac_key_set(key, token, (size_t)length);
	secret_forget(token, sizeof token);
	return length < 0 ? length : 0;
}

int flow_plan(struct flow_run *run, struct ktrxer_error *err)
{
	const struct flow_options *o = run->o;
	struct flow_client_options *p = &run->plan;
	int rc;

	run->up = strcmp(o->direction, "down") != 0;
	run->down = strcmp(o->direction, "up") != 0;
	if ((rc = flow_token_read(&run->token, o->token_file, err)) < 0 ||
	    (rc = server_address_find(run->cli, o->host, &o->from, o->v4, o->v6, (uint16_t)o->port, &p->to, err)) < 0)
		return rc;
	p->from = o->from;
	p->port = (uint16_t)o->port;
	p->token = &run->token;
	p->request.flows = (uint32_t)o->flows * (run->up && run->down ? 2 : 1);
	run->specs = calloc(p->request.flows, sizeof *run->specs);
	run->records = calloc(p->request.flows, sizeof *run->records);
	run->results = calloc(p->request.flows, sizeof *run->results);
	run->shown = calloc(p->request.flows, sizeof *run->shown);
	run->each = calloc(p->request.flows, sizeof *run->each);
	if (!run->specs || !run->records || !run->results || !run->shown || !run->each)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u flows", p->request.flows);
	p->specs = run->specs;
	for (uint32_t i = 0; i < p->request.flows; i++)
		run->specs[i].down = !run->up || i >= o->flows;
	if ((rc = plan_times(run, err)) < 0 || (rc = plan_rate(run, err)) < 0 || (rc = plan_cc(run, err)) < 0 ||
	    (rc = plan_dscp(run, err)) < 0 || (rc = plan_ecn(run, err)) < 0)
		return rc;
	/* Without a route the connection fails, with its own message. */
	(void)path_find(&run->path, p->device, &p->from, &p->to, false, NULL);
	return plan_descriptors(p->request.flows, err);
}

struct path_report flow_path_report(const struct flow_run *run)
{
	return (struct path_report){ .cli = run->cli,
				     .witness = &run->witness,
				     .claim = &run->path,
				     .host = run->o->host,
				     .from_named = run->o->from.family };
}

void flow_release(struct flow_run *run)
{
	flow_client_free(run->client);
	if (run->loop)
		loop_timer_remove(run->loop, &run->pending_timer);
	loop_free(run->loop);
	free(run->specs);
	free(run->records);
	free(run->results);
	free(run->shown);
	free(run->pending);
	for (int down = 0; down < 2; down++)
		flow_series_free(&run->ends[down]);
	for (uint32_t i = 0; run->each && i < run->plan.request.flows; i++)
		flow_series_free(&run->each[i]);
	free(run->each);
	secret_forget(&run->token, sizeof run->token);
}
